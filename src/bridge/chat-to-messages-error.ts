import { isObject, type JsonObject } from "../core/json.ts"
import { errorText } from "./error-text.ts"

interface ChatError {
  readonly status: number
  readonly type: string
  readonly code: string | null
}

/** How each error of the messages dialect is told in the chat dialect. */
const chatErrors: ReadonlyMap<string, ChatError> = new Map([
  ["invalid_request_error", { status: 400, type: "invalid_request_error", code: null }],
  ["authentication_error", { status: 401, type: "invalid_request_error", code: "invalid_api_key" }],
  ["billing_error", { status: 402, type: "billing_error", code: null }],
  ["permission_error", { status: 403, type: "permission_error", code: null }],
  ["not_found_error", { status: 404, type: "not_found_error", code: "model_not_found" }],
  ["request_too_large", { status: 413, type: "request_too_large", code: null }],
  ["rate_limit_error", { status: 429, type: "rate_limit_exceeded", code: "rate_limit_exceeded" }],
  ["overloaded_error", { status: 503, type: "overloaded_error", code: null }],
  ["timeout_error", { status: 504, type: "timeout_error", code: null }],
  ["api_error", { status: 500, type: "server_error", code: null }],
])

const typesByStatus: ReadonlyMap<number, string> = new Map([
  [401, "authentication_error"],
  [402, "billing_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [408, "timeout_error"],
  [413, "request_too_large"],
  [429, "rate_limit_error"],
  [503, "overloaded_error"],
  [504, "timeout_error"],
  [529, "overloaded_error"],
])

/** The vendor's own status for being overloaded, which chat clients do not know. */
const overloadedStatus = 529
const badGateway = 502

/** An error answer of a messages upstream as chat completions would put it. `body` is parsed JSON, or text that is none. */
export function messagesErrorToChat(
  status: number,
  body: unknown,
): { readonly status: number; readonly body: JsonObject } {
  const error = isObject(body) && isObject(body.error) ? body.error : {}
  const said = typeof error.type === "string" ? chatErrors.get(error.type) : undefined
  const meant = said ?? chatErrors.get(typeFor(status))!
  const message = errorText(body) ?? `the upstream answered with status ${status}`
  const code = codeFor(error.code, message) ?? meant.code
  return { status: statusFor(status, said), body: { error: { message, type: meant.type, param: null, code } } }
}

function typeFor(status: number): string {
  return typesByStatus.get(status) ?? (status >= 400 && status < 500 ? "invalid_request_error" : "api_error")
}

/** A refusal keeps its status. A failure takes the one its type stands for, and so does an error that came with a success. */
function statusFor(status: number, said: ChatError | undefined): number {
  if (status >= 400 && status < 500) return status
  if (status < 400) return said?.status ?? badGateway
  if (said !== undefined && said.status >= 500) return said.status
  return status === overloadedStatus ? 503 : status
}

/** Chat clients and the choice of the next route know a prompt that is too long by its code, the vendor tells it in words. */
function codeFor(code: unknown, message: string): string | null {
  if (typeof code === "string" && code !== "") return code
  return /^prompt is too long/i.test(message) ? "context_length_exceeded" : null
}
