import { jsonReply, type Reply } from "../../wire/reply.ts"

const usual: Readonly<Record<number, string>> = {
  400: "Validation of body failed",
  401: "Unauthorized",
  402: "You do not have enough credits to run this task.",
  404: "Task not found",
  429: "You have reached the rate limit. Please try again later.",
  502: "Bad gateway",
  503: "Service unavailable",
  504: "Gateway timeout",
}

export function runwayError(status: number, message?: string, issues?: readonly object[]): Reply {
  const error = message ?? usual[status] ?? "Internal server error"
  return jsonReply(status, { error, ...(issues === undefined ? {} : { issues }) })
}
