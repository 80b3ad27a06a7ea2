import { jsonReply, type Reply } from "../../wire/reply.ts"

/** What Google says with each status: message, name of the status. */
const usual: Readonly<Record<number, readonly [message: string, name: string]>> = {
  400: ["Request contains an invalid argument.", "INVALID_ARGUMENT"],
  401: ["API key not valid. Please pass a valid API key.", "UNAUTHENTICATED"],
  403: ["The caller does not have permission.", "PERMISSION_DENIED"],
  404: ["Requested entity was not found.", "NOT_FOUND"],
  429: ["You exceeded your current quota, please check your plan and billing details.", "RESOURCE_EXHAUSTED"],
  500: ["An internal error has occurred.", "INTERNAL"],
  503: ["The model is overloaded. Please try again later.", "UNAVAILABLE"],
  504: ["Deadline expired before operation could complete.", "DEADLINE_EXCEEDED"],
}

export function googleError(status: number, message?: string): Reply {
  const [words, name] = usual[status] ?? ["Unknown error.", "UNKNOWN"]
  return jsonReply(status, { error: { code: status, message: message ?? words, status: name } })
}
