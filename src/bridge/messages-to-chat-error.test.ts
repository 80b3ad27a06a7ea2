import { describe, expect, test } from "bun:test"
import { errorEnvelope } from "../core/error-envelope.ts"
import { GatewayError } from "../core/errors.ts"
import type { JsonObject } from "../core/json.ts"
import { chatErrorToMessages } from "./messages-to-chat-error.ts"

const chat = (message = "words", more: JsonObject = {}) => ({
  error: { message, type: "some_error", param: null, code: null, ...more },
})
const told = (status: number, body: unknown) => {
  const made = chatErrorToMessages(status, body)
  return { status: made.status, ...(made.body.error as { type: string; message: string; code?: string }) }
}

describe("vector 91", () => {
  test.each([
    [400, 400, "invalid_request_error"],
    [401, 401, "authentication_error"],
    [402, 402, "billing_error"],
    [403, 403, "permission_error"],
    [404, 404, "not_found_error"],
    [405, 405, "invalid_request_error"],
    [408, 408, "timeout_error"],
    [409, 409, "invalid_request_error"],
    [413, 413, "request_too_large"],
    [415, 415, "invalid_request_error"],
    [422, 422, "invalid_request_error"],
    [429, 429, "rate_limit_error"],
    [500, 500, "api_error"],
    [502, 502, "api_error"],
    [503, 529, "overloaded_error"],
    [504, 504, "timeout_error"],
    [529, 529, "overloaded_error"],
    [302, 502, "api_error"],
  ])("status %d is told as %d %s", (status, expected, type) => {
    expect(told(status, chat())).toEqual({ status: expected, type, message: "words" })
  })

  test("the envelope holds the request's id in both places", () => {
    expect(chatErrorToMessages(400, chat(), "req_1").body).toEqual({
      type: "error",
      error: { type: "invalid_request_error", message: "words", request_id: "req_1" },
      request_id: "req_1",
    })
    expect(chatErrorToMessages(400, chat()).body).toEqual({
      type: "error",
      error: { type: "invalid_request_error", message: "words" },
    })
  })

  test("a spent quota keeps its status and code", () => {
    expect(told(429, chat("pay", { type: "insufficient_quota", code: "insufficient_quota" }))).toEqual({
      status: 429,
      type: "rate_limit_error",
      code: "insufficient_quota",
      message: "pay",
    })
  })

  test.each([
    ["This model's maximum context length is 8192 tokens. However, you requested 9000 tokens", null],
    ["too many words", "context_length_exceeded"],
    ["the request exceeds the available context size, try increasing it", null],
    ["This model's maximum prompt length is 131072 but the request contains 140000 tokens.", null],
    ["Your request exceeded model token limit: 131072", null],
    ["The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", null],
    ["Context window is exceeded", null],
  ])("a prompt that is too long (%s, %p) begins with the words that clients know", (message, code) => {
    expect(told(400, chat(message, { code }))).toMatchObject({
      status: 400,
      type: "invalid_request_error",
      message: `prompt is too long: ${message}`,
    })
    expect(told(200, chat(message, { code: code ?? 400 })).message).toBe(`prompt is too long: ${message}`)
  })

  test("those words are not said twice, nor of anything else", () => {
    const known = "prompt is too long: 9 tokens > 8 maximum"
    expect(told(400, chat(known, { code: "context_length_exceeded" })).message).toBe(known)
    expect(told(400, chat("max_tokens is too large: 9")).message).toBe("max_tokens is too large: 9")
    expect(told(500, chat("maximum context length")).message).toBe("maximum context length")
    expect(told(400, chat(`maximum context length ${"x".repeat(5000)}`)).message).toHaveLength(2048)
  })

  test.each([
    [{ code: "overloaded" }, 529, "overloaded_error"],
    [{ code: 503 }, 529, "overloaded_error"],
    [{ code: "503" }, 529, "overloaded_error"],
    [{ type: "service_unavailable_error" }, 529, "overloaded_error"],
    [{ code: "insufficient_system_resource" }, 529, "overloaded_error"],
    [{ code: 429 }, 429, "rate_limit_error"],
    [{ code: "rate_limit_exceeded" }, 429, "rate_limit_error"],
    [{ type: "insufficient_quota" }, 429, "rate_limit_error"],
    [{ type: "invalid_request_error" }, 400, "invalid_request_error"],
    [{ type: "BadRequestError", code: null }, 400, "invalid_request_error"],
    [{ code: "content_policy_violation" }, 400, "invalid_request_error"],
    [{ code: "invalid_api_key", type: "invalid_request_error" }, 401, "authentication_error"],
    [{ type: "authentication_error" }, 401, "authentication_error"],
    [{ code: "insufficient_balance" }, 402, "billing_error"],
    [{ type: "permission_denied" }, 403, "permission_error"],
    [{ code: "model_not_found" }, 404, "not_found_error"],
    [{ code: "request_too_large" }, 413, "request_too_large"],
    [{ code: "timeout" }, 504, "timeout_error"],
    [{ code: 500 }, 500, "api_error"],
    [{ type: "server_error" }, 502, "api_error"],
    [{ code: 7 }, 502, "api_error"],
    [{ code: "" }, 502, "api_error"],
  ])("under status 200 the error %j is told as %d %s", (error, expected, type) => {
    expect(told(200, chat("words", error))).toMatchObject({ status: expected, type, message: "words" })
  })

  test("a failure that says it is one of overload is one", () => {
    expect(told(500, chat("busy", { type: "overloaded_error" }))).toMatchObject({
      status: 529,
      type: "overloaded_error",
    })
    expect(told(500, chat("no", { type: "invalid_request_error" }))).toMatchObject({ status: 500, type: "api_error" })
  })

  const silent = (status: number) => `the upstream answered with status ${status}`
  test.each([
    [400, { error: "just words" }, "just words"],
    [422, { detail: [{ loc: ["body"], msg: "field required" }] }, "field required"],
    [400, { object: "error", message: "vLLM's", type: "BadRequestError", code: 400 }, "vLLM's"],
    [429, { message: "slow down" }, "slow down"],
    [500, "plain words", "plain words"],
    [500, "", silent(500)],
    [500, null, silent(500)],
    [404, undefined, silent(404)],
    [500, { error: { message: 7 } }, silent(500)],
    [500, [[["deep"]]], "deep"],
  ])("%d with the body %j says %j", (status, body, message) => {
    expect(told(status, body).message).toBe(message)
  })
})

test("vector 92: a page is told in its words alone, and not at length", () => {
  const page = `<!DOCTYPE html><html><head><title>502 Bad Gateway</title><style>body { color: red }</style>
    <script>alert("<p>")</script></head><body><h1>502 Bad\n Gateway</h1></body></html>`
  expect(told(502, page)).toEqual({ status: 502, type: "api_error", message: "502 Bad Gateway 502 Bad Gateway" })
  for (const filler of ["x", "<", "<script>", "<a "]) {
    expect(told(500, filler.repeat(1_000_000)).message.length).toBeLessThanOrEqual(2048)
  }
})

test("vector 93: without a key the answer is in the chat style on every path", () => {
  const error = new GatewayError("invalid_api_key", "no such key")
  for (const dialect of ["messages", "unified"] as const) {
    expect(JSON.parse(errorEnvelope(error, "req_1", dialect))).toEqual({
      error: { message: "no such key", type: "invalid_request_error", param: null, code: "invalid_api_key" },
    })
  }
  expect(error.status).toBe(401)
})
