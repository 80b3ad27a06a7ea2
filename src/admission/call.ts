import type { ErrorDialect } from "../core/endpoints.ts"
import type { Principal } from "../core/principal.ts"

/** One call of the model API by someone who may make it. */
export interface Call {
  readonly requestId: string
  readonly request: Request
  /** The query string with its question mark, or nothing. */
  readonly query: string
  readonly principal: Principal
  readonly dialect: ErrorDialect
  /** By `performance.now()`. */
  readonly startedAt: number
  /** To be called exactly once when the response is over, unless handling it throws. */
  ended(): void
}
