import { jsonReply, type Reply } from "../wire/reply.ts"

interface VendorError {
  readonly message: string
  readonly type: string
  readonly param: string | null
  readonly code: string | null
}

const invalid = "invalid_request_error"

/** What OpenAI says with each status: message, type, code. */
const usual: Readonly<Record<number, readonly [message: string, type: string, code: string | null]>> = {
  400: ["Invalid request.", invalid, null],
  401: ["Incorrect API key provided.", invalid, "invalid_api_key"],
  402: ["Insufficient balance.", "insufficient_quota", "insufficient_quota"],
  403: ["You are not allowed to sample from this model.", invalid, "unsupported_country_region_territory"],
  404: ["The model does not exist or you do not have access to it.", invalid, "model_not_found"],
  405: ["Not allowed on this path.", invalid, "method_not_supported"],
  408: ["Request timed out.", "timeout", null],
  409: ["Conflict.", invalid, null],
  413: ["Request body is too large.", invalid, "request_too_large"],
  422: ["Unprocessable entity.", invalid, null],
  425: ["Too early.", invalid, null],
  429: ["Rate limit reached for requests. Please try again later.", "requests", "rate_limit_exceeded"],
  500: ["The server had an error while processing your request. Sorry about that!", "server_error", null],
  502: ["Bad gateway.", "server_error", null],
  503: ["The engine is currently overloaded, please try again later.", "server_error", "engine_overloaded"],
  504: ["The server took too long to answer.", "server_error", null],
  529: ["Overloaded.", "overloaded_error", null],
}

/** An OpenAI-style error body for any status. */
export function errorBody(status: number, given: Partial<VendorError> = {}): { readonly error: VendorError } {
  const [message, type, code] = usual[status] ?? [`Status ${status}.`, status < 500 ? invalid : "server_error", null]
  return { error: { message, type, param: null, code, ...given } }
}

export function errorReply(status: number, given: Partial<VendorError> = {}): Reply {
  return jsonReply(status, errorBody(status, given))
}

/** The 401 of a vendor that expects another key; like the real one it shows the ends of a wrong key. */
export function unauthorizedReply(credential: string | undefined): Reply {
  if (credential === undefined) {
    return errorReply(401, {
      message: "You didn't provide an API key. You need to provide your API key in an Authorization header.",
      code: null,
    })
  }
  return errorReply(401, { message: `Incorrect API key provided: ${masked(credential)}.` })
}

function masked(key: string): string {
  return key.length <= 12 ? "*".repeat(key.length) : `${key.slice(0, 8)}${"*".repeat(key.length - 12)}${key.slice(-4)}`
}
