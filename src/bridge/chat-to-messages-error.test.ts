import { describe, expect, test } from "bun:test"
import type { JsonObject } from "../core/json.ts"
import { chatToMessages } from "./chat-to-messages.ts"
import { messagesErrorToChat } from "./chat-to-messages-error.ts"

const vendor = (type: string, message = "words") => ({ type: "error", error: { type, message }, request_id: "req_1" })
const chat = (type: string, code: string | null, message = "words") => ({ error: { message, type, param: null, code } })

test.each([
  [400, "invalid_request_error", 400, chat("invalid_request_error", null)],
  [401, "authentication_error", 401, chat("invalid_request_error", "invalid_api_key")],
  [402, "billing_error", 402, chat("billing_error", null)],
  [403, "permission_error", 403, chat("permission_error", null)],
  [404, "not_found_error", 404, chat("not_found_error", "model_not_found")],
  [413, "request_too_large", 413, chat("request_too_large", null)],
  [429, "rate_limit_error", 429, chat("rate_limit_exceeded", "rate_limit_exceeded")],
  [500, "api_error", 500, chat("server_error", null)],
  [504, "timeout_error", 504, chat("timeout_error", null)],
  [529, "overloaded_error", 503, chat("overloaded_error", null)],
  [500, "overloaded_error", 503, chat("overloaded_error", null)],
  // A refusal keeps its status whatever its type, a failure stays one.
  [422, "invalid_request_error", 422, chat("invalid_request_error", null)],
  [429, "overloaded_error", 429, chat("overloaded_error", null)],
  [502, "invalid_request_error", 502, chat("invalid_request_error", null)],
  // A success that holds an error has no status of its own.
  [200, "rate_limit_error", 429, chat("rate_limit_exceeded", "rate_limit_exceeded")],
  [200, "overloaded_error", 503, chat("overloaded_error", null)],
  [200, "a_new_error", 502, chat("server_error", null)],
  [418, "a_new_error", 418, chat("invalid_request_error", null)],
])("%d %s becomes %d", (status, type, expected, body) => {
  expect(messagesErrorToChat(status, vendor(type))).toEqual({ status: expected, body })
})

test("a prompt that is too long has the code that chat clients know", () => {
  const message = "prompt is too long: 213462 tokens > 200000 maximum"
  expect(messagesErrorToChat(400, vendor("invalid_request_error", message)).body).toEqual(
    chat("invalid_request_error", "context_length_exceeded", message),
  )
})

test("an error in the chat dialect, as proxies write it, keeps its words and code", () => {
  const body = { error: { message: "no", type: "insufficient_quota", code: "insufficient_quota" } }
  expect(messagesErrorToChat(429, body)).toEqual({
    status: 429,
    body: chat("rate_limit_exceeded", "insufficient_quota", "no"),
  })
})

const silent = (status: number) => `the upstream answered with status ${status}`
test.each([
  [400, { error: "just words" }, 400, "invalid_request_error", "just words"],
  [422, { detail: [{ loc: ["body"], msg: "field required" }] }, 422, "invalid_request_error", "field required"],
  [403, { message: "blocked" }, 403, "permission_error", "blocked"],
  [502, "<html><h1>502 Bad\n Gateway</h1></html>", 502, "server_error", "502 Bad Gateway"],
  [503, "", 503, "overloaded_error", silent(503)],
  [529, null, 503, "overloaded_error", silent(529)],
  [408, undefined, 408, "timeout_error", silent(408)],
  [500, [], 500, "server_error", silent(500)],
  [500, { error: { type: 7, message: null } }, 500, "server_error", silent(500)],
])("%d with the body %p is told by its status", (status, body, expected, type, message) => {
  const told = messagesErrorToChat(status, body)
  expect(told.status).toBe(expected)
  expect(told.body.error).toMatchObject({ type, message } satisfies JsonObject)
})

test("a long page is cut", () => {
  const { error } = messagesErrorToChat(500, "x".repeat(100_000)).body
  expect((error as JsonObject).message).toHaveLength(2048)
})

describe("an error event", () => {
  const words = { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "a" } }
  const finish = { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } }
  const begunStream = () => {
    const stream = chatToMessages.stream({ model: "asked" })
    stream.read("content_block_delta", JSON.stringify(words))
    return stream
  }
  const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }

  test("ends the stream in the chat dialect, as no success", () => {
    const stream = begunStream()
    expect(stream.read("error", JSON.stringify(overloaded))).toBe(
      'data: {"error":{"message":"Overloaded","type":"overloaded_error","param":null,"code":null}}\n\n',
    )
    expect(stream.error).toBe(JSON.stringify(overloaded))
    for (const event of [words, finish, { type: "message_stop" }]) {
      expect(stream.read(event.type, JSON.stringify(event))).toBe("")
    }
    expect(stream).toMatchObject({ complete: false, ended: false })
  })

  test("is known by its name, its type or its body", () => {
    const errors: readonly [string | null, string][] = [
      ["error", "not JSON"],
      ["error", "{}"],
      [null, JSON.stringify(overloaded)],
      [null, '{"error":{"message":"m"}}'],
      [null, '{"error":"m"}'],
    ]
    for (const [event, data] of errors) {
      const stream = chatToMessages.stream({ model: "asked" })
      expect(stream.read(event, data)).toMatch(/^data: \{"error":\{"message":"[^"]+","type":"[a-z_]+".*\}\}\n\n$/)
      expect(stream).toMatchObject({ error: data, begun: false, complete: false })
    }
  })

  test("after a finish is still an error", () => {
    const stream = begunStream()
    stream.read("message_delta", JSON.stringify(finish))
    expect(stream.complete).toBe(true)
    stream.read("error", JSON.stringify(overloaded))
    expect(stream.complete).toBe(false)
  })
})
