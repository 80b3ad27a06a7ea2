import type { JsonValue } from "./json.ts"
import type { AppliedPrice, Tariff } from "./price.ts"
import type { AttemptRecord } from "./story.ts"

/** `submitting`: written down, and perhaps sent; callers see it as `queued`. The last two never change. */
export const jobStates = ["submitting", "queued", "in_progress", "completed", "failed"] as const
export type JobState = (typeof jobStates)[number]

/** How the length of a video was known. */
export type SecondsSource = "reported" | "probed" | "sent"

/** Where a job was sent: enough to ask after it whatever becomes of the catalog. */
export interface JobRoute {
  readonly upstreamId: string
  /** The upstream's name at that time, for people. */
  readonly upstream: string
  readonly vendor: string
  readonly upstreamModel: string
  readonly baseUrl: string
  /** The digest of the credential it was sent with; null where there was none. */
  readonly credentialDigest: string | null
  /** The length asked of the vendor, in whole seconds; null where it takes none. */
  readonly sentSeconds: number | null
}

/** Who may write to a job now. Each claim has a higher number, and a write with an old one changes nothing. */
export interface JobClaim {
  readonly owner: string
  readonly fence: number
}

export interface VideoJob {
  /** A UUID. */
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly keyName: string
  /** The request that submitted it. */
  readonly requestId: string
  /** The logical name. */
  readonly model: string
  readonly withImage: boolean
  /** The prices in force when it was admitted. */
  readonly tariff: Tariff
  readonly state: JobState
  readonly route: JobRoute
  /** What the adapter asks after it with; null until the vendor has taken it. */
  readonly ref: JsonValue
  /** The vendor's own id, for people. */
  readonly vendorId: string | null
  readonly attempts: readonly AttemptRecord[]
  /** Unix milliseconds, as all times here. */
  readonly createdAt: number
  readonly submittedAt: number | null
  readonly finishedAt: number | null
  readonly polls: number
  readonly lastLookAt: number | null
  readonly nextLookAt: number
  /** Since when the vendor says that it knows no such job; null while it does. */
  readonly missingSince: number | null
  /** What stood in the way of the last look; null: nothing. */
  readonly trouble: string | null
  /** What the caller is told of a failed job. */
  readonly error: string | null
  /** The vendor's address of the result. */
  readonly resultUrl: string | null
  /** The address opens only with the upstream's credential. */
  readonly resultNeedsCredential: boolean
  /** A copy is kept under the job's id. */
  readonly resultKept: boolean
  readonly microseconds: number | null
  readonly secondsSource: SecondsSource | null
  readonly price: AppliedPrice | null
  /** In 1e-9 dollar. */
  readonly charge: bigint
  /** The caller has deleted it: it is in no list any more. */
  readonly hidden: boolean
  readonly fence: number
}

export function isOver(state: JobState): boolean {
  return state === "completed" || state === "failed"
}
