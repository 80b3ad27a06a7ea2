import { GatewayError } from "../core/errors.ts"

/** Why one attempt on one route did not give an answer. */
export type FailureCause =
  | "unreachable" // refused, reset before headers, DNS, TLS
  | "timeout" // no headers, or no first token, in time
  | "deadline" // the request's own limit was reached
  | "status" // an HTTP status of 400 or more
  | "bad_stream" // a 200 stream that is empty or whose first event is an error
  | "bad_answer" // a 200 that is not what the protocol says
  | "redirect"
  | "stream_options" // a 400 because the vendor does not know the usage option we added
  | "not_bridgeable" // asks for what the upstream's dialect does not have
  | "job_failed" // the vendor's own verdict on a job
  | "client_gone"
  | "shutdown" // this instance can wait no longer

export interface Failure {
  readonly kind: "failure"
  readonly cause: FailureCause
  /** For operators. */
  readonly detail: string
  /** What the caller is told if no other route can carry the request. */
  readonly error?: GatewayError
  /** The upstream's answer, when there was one with an error status. */
  readonly answer?: { readonly status: number; readonly headers: Record<string, string>; readonly body: Uint8Array }
}

export function failure(cause: FailureCause, detail: string): Failure {
  return { kind: "failure", cause, detail }
}

/** Where to go after a failure while nothing has reached the caller. */
export type Verdict =
  | { readonly go: "same_once" } // once more on the same route, then the next one
  | { readonly go: "wait"; readonly ms: number } // an equal route at once, else the same one after a pause
  | { readonly go: "next" } // the next route, never the same one
  | { readonly go: "without_stream_options" } // the same route at once, without the option
  | { readonly go: "stop" }

/** The longest `retry-after` worth waiting for inside a request. */
export const longestRetryAfterMs = 3000

export function verdictOn(failure: Failure): Verdict {
  switch (failure.cause) {
    case "unreachable":
    case "bad_stream":
    case "bad_answer":
      return { go: "same_once" }
    case "timeout":
    case "redirect":
    case "not_bridgeable":
      return { go: "next" }
    case "stream_options":
      return { go: "without_stream_options" }
    case "status":
      return verdictOnStatus(failure)
    case "deadline":
    case "job_failed":
    case "client_gone":
    case "shutdown":
      return { go: "stop" }
  }
}

const nextRouteStatuses: ReadonlySet<number> = new Set([401, 402, 403, 404, 408, 425, 429])

function verdictOnStatus(failure: Failure): Verdict {
  const status = failure.answer?.status ?? 500
  if (status === 429 || status === 503) {
    const ms = retryAfterMs(failure.answer?.headers["retry-after"])
    if (ms !== null && ms <= longestRetryAfterMs) return { go: "wait", ms }
  }
  if (status >= 500) return { go: "same_once" }
  if (nextRouteStatuses.has(status)) return { go: "next" }
  if (status === 400 && isTooLong(failure)) return { go: "next" }
  return { go: "stop" }
}

/** Whether a failure says that the upstream is unwell, and not that the request or the account is. */
export function countsAgainstHealth(failure: Failure): boolean {
  switch (failure.cause) {
    case "unreachable":
    case "timeout":
    case "bad_stream":
    case "bad_answer":
    case "redirect":
      return true
    case "status":
      return (failure.answer?.status ?? 500) >= 500
    default:
      return false
  }
}

/** The seconds or date of a `retry-after` header as milliseconds from now; null when there is none to obey. */
export function retryAfterMs(value: string | undefined, now = Date.now()): number | null {
  if (value === undefined) return null
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000
  // Read as a date only where a weekday begins one: the parser takes "-5" for a day of 2001.
  const date = /^[A-Z][a-z]{2,8},? /.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(date) ? null : Math.max(0, date - now)
}

/** Another route may have a longer context. The messages dialect has no code for it, but words that its clients go by. */
function isTooLong(failure: Failure): boolean {
  try {
    const { error } = JSON.parse(Buffer.from(failure.answer?.body ?? []).toString("utf8"))
    return error.code === "context_length_exceeded" || String(error.message).startsWith("prompt is too long")
  } catch {
    return false
  }
}

/** What the caller is told when the last attempt failed and its answer is not one to pass on. */
export function errorFor(failure: Failure, stream: boolean): GatewayError {
  if (failure.error !== undefined) return failure.error
  const internal = failure.detail
  switch (failure.cause) {
    case "unreachable":
      return new GatewayError("upstream_unreachable", "no upstream for this model could be reached", { internal })
    case "timeout":
      return new GatewayError("first_token_timeout", "no upstream began to answer in time", { internal })
    case "deadline":
      return stream
        ? new GatewayError("stream_total_timeout", "the request took longer than a stream may take in all", {
            internal,
          })
        : new GatewayError("request_timeout", "the upstream did not answer within the time limit", { internal })
    case "shutdown":
      return new GatewayError("backend_unavailable", "this instance is shutting down and can wait no longer")
    case "bad_answer":
    case "redirect":
      return new GatewayError("upstream_invalid_response", "the upstream's answer could not be understood", {
        internal,
      })
    default:
      return new GatewayError("upstream_error", "the upstream failed to answer this request", { internal })
  }
}
