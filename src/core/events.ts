import type { RequestRecord } from "./request-record.ts"
import type { AttemptRecord, Story } from "./story.ts"

export type CircuitState = "closed" | "open" | "half_open"

/** What happens in the house that an operator wants to know, one call each. */
export interface Events {
  attemptFailed(story: Story, attempt: AttemptRecord): void
  requestEnded(story: Story): void
  circuitChanged(upstream: string, state: CircuitState): void
  catalogLoaded(version: number): void
  catalogRejected(version: number, problems: readonly string[]): void
  databaseAway(error: unknown): void
  databaseBack(): void
  /** Limits shared through Redis fell back to this instance's own share, or are shared again. */
  limitsDegraded(away: boolean, why: string): void
  /** Charges go to the local journal because the database is away, or all of them are in the database again. */
  journaling(active: boolean, why: string): void
  /** Charges can be kept nowhere, so that new requests are refused, or they can be again. */
  chargesStuck(stuck: boolean, why: string): void
  /** A request that the database will never take; it needs a person. */
  chargeUnposted(record: RequestRecord, why: string): void
  /** Requests without a charge that were not put on record, for want of room while they could be kept nowhere. */
  recordsDropped(count: number): void
  /** The journal was found damaged; what could not be read was put aside. */
  journalDamaged(problem: string): void
  /** A vendor uses a status word that nobody has told us about; the job is taken to go on. */
  oddJobStatus(vendor: string, word: string): void
  /** A job reached its verdict. */
  jobEnded(job: {
    readonly id: string
    readonly vendor: string
    readonly state: string
    readonly error: string | null
  }): void
  internalError(requestId: string, error: unknown): void
}
