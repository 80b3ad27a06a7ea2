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
  internalError(requestId: string, error: unknown): void
}
