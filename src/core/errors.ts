/** The error table: every code the gateway itself answers with, its HTTP status and its type. */
const table = {
  invalid_json: [400, "invalid_request_error"],
  missing_model: [400, "invalid_request_error"],
  duplicate_key: [400, "invalid_request_error"],
  invalid_parameter: [400, "invalid_request_error"],
  invalid_api_key: [401, "invalid_request_error"],
  insufficient_balance: [402, "billing_error"],
  account_suspended: [403, "permission_error"],
  model_not_found: [404, "not_found_error"],
  job_not_found: [404, "not_found_error"],
  not_found: [404, "not_found_error"],
  method_not_allowed: [405, "invalid_request_error"],
  unsupported_media_type: [415, "invalid_request_error"],
  request_body_too_large: [413, "invalid_request_error"],
  concurrency_limit: [429, "rate_limit_error"],
  internal_error: [500, "api_error"],
  upstream_unreachable: [502, "api_error"],
  upstream_error: [502, "api_error"],
  upstream_invalid_response: [502, "api_error"],
  upstream_stream_truncated: [502, "api_error"],
  backend_unavailable: [503, "overloaded_error"],
  request_timeout: [504, "timeout_error"],
  first_token_timeout: [504, "timeout_error"],
  stream_silence_timeout: [504, "timeout_error"],
  stream_total_timeout: [504, "timeout_error"],
} as const satisfies Record<string, readonly [status: number, type: string]>

export type ErrorCode = keyof typeof table

export interface ErrorExtras {
  /** What operators may know and callers may not; goes to the log only. */
  readonly internal?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly cause?: unknown
}

/** Any refusal or failure of the gateway. `message` is public text; it is rendered once, at the edge, in the caller's dialect. */
export class GatewayError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly type: string
  readonly internal: string | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.name = "GatewayError"
    this.code = code
    ;[this.status, this.type] = table[code]
    this.internal = extras.internal
    this.headers = extras.headers ?? {}
  }
}
