import type { Endpoint } from "./endpoints.ts"
import type { TokenUsage } from "./usage.ts"

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
  readonly account: string
  readonly key: string
  model: string
  stream: boolean
  readonly attempts: AttemptRecord[]
  /** Milliseconds since the request began. */
  firstTokenAt: number | null
  endedAt: number | null
  status: number
  /** The error code the caller was given, in a body or in the stream. */
  error: string | null
  ending: Ending | null
  usage: TokenUsage | null
  /** The usage was counted here, because the upstream gave none. */
  estimated: boolean
}
