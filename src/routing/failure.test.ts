import { describe, expect, test } from "bun:test"
import { utf8 } from "../lib/bytes.ts"
import {
  countsAgainstHealth,
  errorFor,
  type Failure,
  type FailureCause,
  longestRetryAfterMs,
  retryAfterMs,
  type Verdict,
  verdictOn,
} from "./failure.ts"

function failure(cause: FailureCause): Failure {
  return { kind: "failure", cause, detail: "what operators see" }
}

function answered(status: number, headers: Record<string, string> = {}, body = ""): Failure {
  return { ...failure("status"), answer: { status, headers, body: utf8(body) } }
}

describe("where to go after a failure without an HTTP status", () => {
  const verdicts: Readonly<Record<Exclude<FailureCause, "status">, Verdict["go"]>> = {
    unreachable: "same_once",
    bad_stream: "same_once",
    bad_answer: "same_once",
    timeout: "next",
    redirect: "next",
    not_bridgeable: "next",
    job_failed: "stop",
    stream_options: "without_stream_options",
    deadline: "stop",
    client_gone: "stop",
    shutdown: "stop",
  }
  test.each(Object.entries(verdicts))("%s: %s", (cause, go) => {
    expect(verdictOn(failure(cause as FailureCause))).toEqual({ go } as Verdict)
  })
})

describe("where to go after an error status", () => {
  test.each([401, 402, 403, 404, 408, 425, 429])("%d: the next route", (status) => {
    expect(verdictOn(answered(status))).toEqual({ go: "next" })
  })

  test.each([500, 501, 502, 503, 504, 520, 529, 599])("%d: once more, then the next route", (status) => {
    expect(verdictOn(answered(status))).toEqual({ go: "same_once" })
  })

  test.each([400, 405, 406, 409, 410, 411, 413, 414, 415, 418, 422, 424, 426, 431, 451, 499])(
    "%d: the caller's own",
    (status) => {
      expect(verdictOn(answered(status))).toEqual({ go: "stop" })
      expect(verdictOn(answered(status, { "retry-after": "1" }))).toEqual({ go: "stop" })
    },
  )

  test("a status failure without its answer counts as the upstream's fault", () => {
    expect(verdictOn(failure("status"))).toEqual({ go: "same_once" })
  })

  test("400 with the code context_length_exceeded: a longer window may be on the next route", () => {
    const body = '{"error":{"message":"too long","code":"context_length_exceeded"}}'
    expect(verdictOn(answered(400, {}, body))).toEqual({ go: "next" })
  })

  test.each([
    "",
    "null",
    "[]",
    '"context_length_exceeded"',
    "not json: context_length_exceeded",
    '{"error":"context_length_exceeded"}',
    '{"code":"context_length_exceeded"}',
    '{"error":{"code":null}}',
    '{"error":{"message":"context_length_exceeded","code":"invalid"}}',
  ])("400 with the body %s is the caller's", (body) => {
    expect(verdictOn(answered(400, {}, body))).toEqual({ go: "stop" })
  })

  test("the code context_length_exceeded means nothing on another status", () => {
    expect(verdictOn(answered(422, {}, '{"error":{"code":"context_length_exceeded"}}'))).toEqual({ go: "stop" })
  })
})

describe("retry-after", () => {
  test.each([429, 503])("%d with one of up to 3 s: wait that long", (status) => {
    expect(verdictOn(answered(status, { "retry-after": "0" }))).toEqual({ go: "wait", ms: 0 })
    expect(verdictOn(answered(status, { "retry-after": "2" }))).toEqual({ go: "wait", ms: 2000 })
    expect(verdictOn(answered(status, { "retry-after": "3" }))).toEqual({ go: "wait", ms: longestRetryAfterMs })
  })

  test("a longer one is not waited for", () => {
    expect(verdictOn(answered(429, { "retry-after": "3.001" }))).toEqual({ go: "next" })
    expect(verdictOn(answered(429, { "retry-after": "60" }))).toEqual({ go: "next" })
    expect(verdictOn(answered(503, { "retry-after": "4" }))).toEqual({ go: "same_once" })
  })

  test.each([500, 502, 504, 529, 404])("on %d it changes nothing", (status) => {
    expect(verdictOn(answered(status, { "retry-after": "1" }))).toEqual(verdictOn(answered(status)))
  })

  test.each(["soon", "", "-5", "-1", "+3", "1e3", "1,5", "0x10", "2.", "5 seconds", "NaN", "Infinity", "60 Jan"])(
    "%p is none to obey",
    (value) => {
      expect(retryAfterMs(value)).toBeNull()
      expect(verdictOn(answered(429, { "retry-after": value }))).toEqual({ go: "next" })
    },
  )

  test("seconds, whole or not", () => {
    expect(retryAfterMs("0")).toBe(0)
    expect(retryAfterMs("7")).toBe(7000)
    expect(retryAfterMs("1.5")).toBe(1500)
    expect(retryAfterMs(undefined)).toBeNull()
  })

  test("a date is told from now; one in the past is now", () => {
    const now = Date.UTC(2026, 0, 2, 3, 4, 5)
    expect(retryAfterMs("Fri, 02 Jan 2026 03:04:07 GMT", now)).toBe(2000)
    expect(retryAfterMs("Fri, 02 Jan 2026 03:04:05 GMT", now)).toBe(0)
    expect(retryAfterMs("Thu, 01 Jan 2026 00:00:00 GMT", now)).toBe(0)
    expect(retryAfterMs("Friday, 02-Jan-26 03:04:08 GMT", now)).toBe(3000)
  })
})

describe("the upstream's health", () => {
  test.each(["unreachable", "timeout", "bad_stream", "bad_answer", "redirect"] as const)("%s counts", (cause) => {
    expect(countsAgainstHealth(failure(cause))).toBe(true)
  })

  test.each(["deadline", "client_gone", "shutdown", "stream_options"] as const)("%s does not", (cause) => {
    expect(countsAgainstHealth(failure(cause))).toBe(false)
  })

  test("of the statuses only 5xx count", () => {
    for (const status of [500, 503, 529]) expect(countsAgainstHealth(answered(status))).toBe(true)
    for (const status of [400, 401, 404, 429, 499]) expect(countsAgainstHealth(answered(status))).toBe(false)
  })
})

describe("what the caller is told", () => {
  test.each([
    ["unreachable", "upstream_unreachable", 502],
    ["timeout", "first_token_timeout", 504],
    ["bad_answer", "upstream_invalid_response", 502],
    ["redirect", "upstream_invalid_response", 502],
    ["bad_stream", "upstream_error", 502],
    ["shutdown", "backend_unavailable", 503],
    ["status", "upstream_error", 502],
  ] as const)("%s: %s", (cause, code, status) => {
    const error = errorFor(failure(cause), true)
    expect({ code: error.code, status: error.status }).toEqual({ code, status })
  })

  test("the deadline has one name for streams and one for whole answers", () => {
    expect(errorFor(failure("deadline"), true).code).toBe("stream_total_timeout")
    expect(errorFor(failure("deadline"), false).code).toBe("request_timeout")
  })

  test("what operators see stays out of the public text", () => {
    const error = errorFor(answered(500, {}, "secret stack trace"), false)
    expect(error.internal).toBe("what operators see")
    expect(error.message).not.toContain("what operators see")
  })
})
