import type { Endpoint } from "./endpoints.ts"
import type { Measured } from "./measured.ts"
import type { AppliedPrice } from "./price.ts"
import type { AttemptRecord, Ending } from "./story.ts"

/** What the books keep of one request, charged or not. Bodies are never part of it. */
export interface RequestRecord {
  /** The request id, which is also the reference of its ledger line. */
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly keyName: string
  readonly endpoint: Endpoint
  /** The logical name, as the caller wrote it. */
  readonly model: string
  /** The upstream that answered, or was asked last; null where none was asked. */
  readonly upstream: string | null
  readonly upstreamModel: string | null
  readonly stream: boolean
  readonly attempts: readonly AttemptRecord[]
  /** The HTTP status the caller was given. */
  readonly status: number
  readonly error: string | null
  readonly ending: Ending
  /** Unix milliseconds. */
  readonly startedAt: number
  readonly endedAt: number
  /** Milliseconds since the request began. */
  readonly firstTokenMs: number | null
  readonly durationMs: number
  readonly measured: Measured
  /** Something that it is charged by was counted here, because the upstream did not say. */
  readonly estimated: boolean
  /** The upstream said something that cannot be charged by. */
  readonly usageInvalid: boolean
  /** Null where nothing is charged. */
  readonly price: AppliedPrice | null
  /** In 1e-9 dollar, never below zero; above zero there is a ledger line of minus this amount. */
  readonly charge: bigint
}
