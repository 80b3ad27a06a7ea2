import { jsonReply, type Reply } from "../../wire/reply.ts"
import { plainId } from "../ids.ts"

/** What the first version says with each of its codes. */
const codes: Readonly<Record<number, string>> = {
  0: "success",
  1000: "unknown error",
  1001: "request timeout",
  1002: "rate limit",
  1004: "login fail: Please carry the API secret key in the 'Authorization' field of the request header",
  1008: "insufficient balance",
  1024: "internal error",
  1026: "input new_sensitive",
  1027: "output new_sensitive",
  2013: "invalid params",
  2049: "invalid api key",
}

/** The code that goes with a status that was told. */
const usual: Readonly<Record<number, number>> = { 400: 2013, 401: 2049, 402: 1008, 404: 2013, 429: 1002, 504: 1001 }

export interface BaseResponse {
  readonly base_resp: { readonly status_code: number; readonly status_msg: string }
}

export function baseResponse(code: number, message?: string): BaseResponse {
  return { base_resp: { status_code: code, status_msg: message ?? codes[code] ?? "unknown error" } }
}

/** The first version's errors come with status 200. */
export function minimaxError(code: number, message?: string): Reply {
  return jsonReply(200, { task_id: "", ...baseResponse(code, message) })
}

export function minimaxRefusal(status: number, message?: string): Reply {
  return jsonReply(status, baseResponse(usual[status] ?? 1024, message))
}

/** What the second version says with each status: type, message. */
const secondUsual: Readonly<Record<number, readonly [type: string, message: string]>> = {
  400: ["invalid_request_error", "invalid params"],
  401: ["authentication_error", "invalid api key"],
  402: ["insufficient_balance_error", "insufficient balance"],
  403: ["permission_error", "permission denied"],
  404: ["not_found_error", "task not found"],
  429: ["rate_limit_error", "rate limit"],
}

export function minimaxSecondError(status: number, message?: string): Reply {
  const [type, words] = secondUsual[status] ?? ["api_error", "internal error"]
  const error = { type, message: message ?? words, http_code: String(status) }
  return jsonReply(status, { type: "error", error, request_id: plainId() })
}
