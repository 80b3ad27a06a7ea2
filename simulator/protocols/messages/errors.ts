import { jsonReply, type Reply } from "../../wire/reply.ts"
import type { HeaderPair } from "../../wire/request-parser.ts"
import { plainId } from "../ids.ts"

/** What Anthropic says with each status: type, message. */
const usual: Readonly<Record<number, readonly [type: string, message: string]>> = {
  400: ["invalid_request_error", "Invalid request."],
  401: ["authentication_error", "invalid x-api-key"],
  402: ["billing_error", "Your credit balance is too low to access the API."],
  403: ["permission_error", "Your API key does not have permission to use the specified resource."],
  404: ["not_found_error", "model: unknown"],
  413: ["request_too_large", "Request exceeds the maximum size"],
  429: ["rate_limit_error", "This request would exceed your account's rate limit. Please try again later."],
  500: ["api_error", "Internal server error"],
  504: ["timeout_error", "Request timed out."],
  529: ["overloaded_error", "Overloaded"],
}

export const usualErrorType = "overloaded_error"

/** Anthropic's error body for any status, with the request's id in both its places. */
export function messagesError(status: number, message?: string, type?: string): Reply {
  const [usualType, words] = usual[status] ?? [
    status < 500 ? "invalid_request_error" : "api_error",
    `Status ${status}.`,
  ]
  const headers = anthropicHeaders()
  const error = errorData(type ?? usualType, message ?? words)
  return jsonReply(status, { ...error, request_id: headers[0][1] }, headers)
}

/** What an `error` event says, which has no request id. */
export function errorData(type: string, message = wordsFor(type)): { type: "error"; error: object } {
  return { type: "error", error: { type, message } }
}

/** The status that the API sends an error type with. */
export function statusOf(type: string): number {
  return Number(Object.entries(usual).find(([, [known]]) => known === type)?.[0] ?? 500)
}

function wordsFor(type: string): string {
  return usual[statusOf(type)]?.[1] ?? "Internal server error"
}

/** Headers the real vendor sends and a gateway must pick from. */
export function anthropicHeaders(): readonly [HeaderPair, ...HeaderPair[]] {
  return [
    ["request-id", `req_${plainId()}`],
    ["anthropic-organization-id", "simulated"],
    ["anthropic-ratelimit-requests-limit", "4000"],
    ["anthropic-ratelimit-requests-remaining", "3999"],
  ]
}
