import type { Endpoint } from "./endpoints.ts"
import type { Measured } from "./measured.ts"
import type { AppliedPrice, Tariff } from "./price.ts"

/** One ask to one upstream. */
export interface AttemptRecord {
  readonly upstream: string
  readonly upstreamModel: string
  /** Why this route, at this moment. */
  readonly why: string
  /** Milliseconds since the request began. */
  readonly startedAt: number
  endedAt: number | null
  /** `answered`, or what went wrong. */
  outcome: string
  status: number | null
  detail: string | null
}

export type Ending = "completed" | "refused" | "failed" | "client_gone"

/** What happened to one request, told as it goes. */
export interface Story {
  readonly requestId: string
  readonly endpoint: Endpoint
  readonly accountId: string
  readonly account: string
  readonly keyId: string
  readonly key: string
  readonly model: string
  readonly stream: boolean
  readonly attempts: AttemptRecord[]
  /** The prices in force when the request was admitted. */
  readonly tariff: Tariff
  /** Milliseconds since the request began. */
  firstTokenAt: number | null
  endedAt: number | null
  status: number
  /** The error code the caller was given, in a body or in the stream. */
  error: string | null
  ending: Ending | null
  /** What it took; null where nothing came of it. */
  measured: Measured | null
  /** It is not charged, whatever it took. */
  waived: boolean
  /** Something of it was counted here, because the upstream did not say. */
  estimated: boolean
  /** The upstream said something that cannot be charged by. */
  usageInvalid: boolean
  /** In 1e-9 dollar. */
  charge: bigint
  price: AppliedPrice | null
}
