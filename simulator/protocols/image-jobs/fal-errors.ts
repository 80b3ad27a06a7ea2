import { jsonReply, type Reply } from "../../wire/reply.ts"

/** What fal says with each status: detail, error type. */
const usual: Readonly<Record<number, readonly [detail: string, errorType: string]>> = {
  400: ["Bad request", "bad_request"],
  401: ["Authentication is required to access this application.", "unauthorized"],
  402: ["User is locked. Reason: Exhausted balance.", "payment_required"],
  403: ["Forbidden", "forbidden"],
  404: ["Application not found", "not_found"],
  429: ["Too many requests", "rate_limited"],
  503: ["Runner was not available", "runner_connection_error"],
  504: ["Request timed out", "request_timeout"],
}

const validationWords = "Field required"
const policyWords = "The content could not be processed because it contained material flagged by a content checker."

/** An error of the platform, named in the body and in a header. */
export function falError(status: number, detail: string, errorType: string): Reply {
  return jsonReply(status, { detail, error_type: errorType }, [["x-fal-error-type", errorType]])
}

/** fal's usual words for a status; 422 is the model's own verdict and has another shape. */
export function falRefusal(status: number, message?: string, type = "missing"): Reply {
  if (status === 422) {
    const msg = message ?? (type === "missing" ? validationWords : policyWords)
    return jsonReply(422, { detail: [{ loc: ["body", "prompt"], msg, type, input: {} }] })
  }
  const [detail, errorType] = usual[status] ?? ["Internal Server Error", "internal_error"]
  return falError(status, message ?? detail, errorType)
}
