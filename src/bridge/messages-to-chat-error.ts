import { isObject, type JsonObject } from "../core/json.ts"
import { errorText, longestText } from "./error-text.ts"

type ErrorType =
  | "invalid_request_error"
  | "authentication_error"
  | "billing_error"
  | "permission_error"
  | "not_found_error"
  | "request_too_large"
  | "rate_limit_error"
  | "timeout_error"
  | "overloaded_error"
  | "api_error"

const typesByStatus: ReadonlyMap<number, ErrorType> = new Map([
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

/** Words of error types and codes that say what happened where no status does: in a stream, and under status 200. */
const statusByWord: readonly (readonly [word: RegExp, status: number])[] = [
  [/overload|unavailable|insufficient_system_resource/, 529],
  [/rate_limit|too_many_requests|insufficient_quota|quota_exceeded/, 429],
  [/context_length|invalid_request|invalid_parameter|bad_?request|content_policy|content_filter/, 400],
  [/authentication|invalid_api_key|unauthorized/, 401],
  [/billing|insufficient_balance|payment/, 402],
  [/permission|forbidden/, 403],
  [/not_?found/, 404],
  [/too_large/, 413],
  [/timeout|timed_out/, 504],
]

const overloadedStatus = 529
const badGateway = 502

/** How vendors say that a prompt is too long for the model. */
const tooLong =
  /maximum (context|prompt) length|context[ _](length|window|size)[^.]* exceed|exceed[^.]* (context[ _](length|window|size)|model token limit|maximum number of (input )?tokens)|range of input length/i

/** The words by which clients of the messages dialect know it, and shorten the conversation by themselves. */
const promptTooLong = "prompt is too long"

/** An error answer of a chat upstream as messages would put it. `body` is parsed JSON, or text that is none. */
export function chatErrorToMessages(
  status: number,
  body: unknown,
  requestId?: string,
): { readonly status: number; readonly body: JsonObject } {
  const told = isObject(body) && isObject(body.error) ? body.error : isObject(body) ? body : {}
  const meant = statusFor(status, told)
  const type = typeFor(meant)
  const text = errorText(body) ?? `the upstream answered with status ${status}`
  const code = typeof told.code === "string" && told.code !== "" ? { code: told.code } : {}
  const message = type === "invalid_request_error" ? clientsWords(told.code, text) : text
  const id = requestId === undefined ? {} : { request_id: requestId }
  return { status: meant, body: { type: "error", error: { type, ...code, message, ...id }, ...id } }
}

function typeFor(status: number): ErrorType {
  return typesByStatus.get(status) ?? (status >= 400 && status < 500 ? "invalid_request_error" : "api_error")
}

/** A refusal keeps its status. Being overloaded has one of its own in this dialect, and clients retry by it. */
function statusFor(status: number, told: Readonly<Record<string, unknown>>): number {
  if (status >= 400 && status < 500) return status
  const said = saidStatus(told)
  if (status === 503 || said === overloadedStatus) return overloadedStatus
  return status < 400 ? (said ?? badGateway) : status
}

function saidStatus({ code, type }: Readonly<Record<string, unknown>>): number | null {
  const number = typeof code === "string" || typeof code === "number" ? Number(code) : Number.NaN
  if (Number.isInteger(number) && number >= 400 && number < 600) {
    return number === 503 ? overloadedStatus : number
  }
  // The code says more than the type.
  for (const said of [code, type]) {
    if (typeof said !== "string") continue
    const known = statusByWord.find(([word]) => word.test(said.toLowerCase()))
    if (known !== undefined) return known[1]
  }
  return null
}

function clientsWords(code: unknown, text: string): string {
  if (text.startsWith(promptTooLong)) return text
  const isTooLong = code === "context_length_exceeded" || tooLong.test(text)
  return isTooLong ? `${promptTooLong}: ${text}`.slice(0, longestText) : text
}
