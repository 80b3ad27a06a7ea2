import { jsonReply, type Reply } from "../../wire/reply.ts"

/** What DashScope says with each status: code, message. */
const usual: Readonly<Record<number, readonly [code: string, message: string]>> = {
  400: ["InvalidParameter", "Required parameter(s) missing or invalid, please check the request parameters."],
  401: ["InvalidApiKey", "Invalid API-key provided."],
  402: ["Arrearage", "Access denied, please make sure your account is in good standing."],
  403: ["AccessDenied", "Access denied."],
  404: ["ModelNotFound", "Model can not be found."],
  429: ["Throttling.RateQuota", "Requests rate limit exceeded, please try again later."],
  500: ["InternalError", "An internal error has occurred, please try again later or contact service support."],
  503: ["ModelUnavailable", "Model is unavailable, please try again later."],
}

export const inspectionWords = "Input data may contain inappropriate content."

export function dashscopeError(status: number, message?: string, code?: string): Reply {
  const [usualCode, words] = usual[status] ?? usual[status < 500 ? 400 : 500] ?? ["", ""]
  const told = message ?? (code === "DataInspectionFailed" ? inspectionWords : words)
  return jsonReply(status, { code: code ?? usualCode, message: told, request_id: Bun.randomUUIDv7() })
}
