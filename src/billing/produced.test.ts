import { describe, expect, test } from "bun:test"
import { endpoints } from "../core/endpoints.ts"
import type { JsonObject } from "../core/json.ts"
import { producedBy } from "./produced.ts"

const chat = (...messages: JsonObject[]) =>
  producedBy("chat", { choices: messages.map((message, index) => ({ index, message })) })

describe("a chat completion", () => {
  test("every choice counts", () => {
    expect(chat({ content: "a" }, { content: "b" })).toBe("ab")
  })

  test("reasoning counts once, under whichever name, then content, refusal and calls", () => {
    const calls = [
      { id: "call_1", function: { name: "f", arguments: '{"x":1}' } },
      { id: "call_2", function: { name: "g", arguments: { y: 2 } } },
    ]
    expect(chat({ role: "assistant", content: "b", reasoning: "a", refusal: "c", tool_calls: calls })).toBe(
      'abcf{"x":1}g{"y":2}',
    )
    expect(chat({ reasoning: "a", reasoning_content: "a" })).toBe("a")
    expect(chat({ content: null, function_call: { name: "f", arguments: "{}" } })).toBe("f{}")
  })

  test("content in parts counts by its texts", () => {
    const thinking = { type: "thinking", thinking: [{ type: "text", text: "a" }] }
    expect(chat({ content: [thinking, { type: "text", text: "b" }, { type: "image_url", image_url: {} }] })).toBe("ab")
  })

  test("sounds count nothing", () => {
    expect(chat({ content: null, audio: { data: "QUJD", transcript: "a" } })).toBe("")
  })
})

test("a response: texts, refusals, calls and summaries of reasoning; not what the vendor's own tools made", () => {
  const output = [
    { type: "reasoning", encrypted_content: "xyz", summary: [{ type: "summary_text", text: "a" }] },
    { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "b" }] },
    { type: "message", content: [{ type: "output_text", text: "c", annotations: [] }] },
    { type: "message", content: [{ type: "refusal", refusal: "d" }] },
    { type: "function_call", call_id: "call_1", name: "e", arguments: "{}" },
    { type: "custom_tool_call", call_id: "call_2", name: "f", input: "g" },
    { type: "code_interpreter_call", code: "print()", outputs: [] },
    { type: "image_generation_call", result: "QUJD" },
    { type: "web_search_call", action: { query: "q" } },
  ]
  expect(producedBy("responses", { output })).toBe("abcde{}fg")
})

test("a message: texts, thinking and calls; not what cannot be read", () => {
  const content = [
    { type: "thinking", thinking: "a", signature: "xyz" },
    { type: "redacted_thinking", data: "xyz" },
    { type: "text", text: "b" },
    { type: "tool_use", id: "t", name: "c", input: { x: 1 } },
    { type: "tool_use", id: "u", name: "d" },
    { type: "server_tool_use", id: "v", name: "web_search", input: { query: "q" } },
  ]
  expect(producedBy("messages", { content })).toBe('abc{"x":1}d{}')
})

const oddAnswers: readonly JsonObject[] = [
  {},
  { choices: null, output: null, content: null },
  { choices: "x", output: 7, content: "x" },
  { choices: [null, 3, {}, { message: 7 }], output: [null, 3, { type: "message", content: 7 }], content: [null, 3] },
  { choices: [{ message: { content: 7, tool_calls: [null, { function: 7 }] } }], output: [{ type: "reasoning" }] },
]
test.each(endpoints.map((endpoint) => [endpoint] as const))("odd answers have produced nothing: %s", (endpoint) => {
  for (const answer of oddAnswers) expect(producedBy(endpoint, answer)).toBe("")
})
