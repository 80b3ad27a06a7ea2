import { expect, test } from "bun:test"
import { GatewayError } from "../core/errors.ts"
import type { JsonObject } from "../core/json.ts"
import { chatToMessages } from "./chat-to-messages.ts"

const hi = { role: "user", content: "Hi" }

function refusal(fields: JsonObject): GatewayError | null {
  try {
    const options = { upstreamModel: "claude-x", stream: false, streamOptions: true }
    chatToMessages.request({ model: "m", messages: [hi], ...fields }, options)
    return null
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

const part = (content: JsonObject): JsonObject => ({ messages: [{ role: "user", content: [content] }] })
const assistant = (fields: JsonObject): JsonObject => ({ messages: [hi, { role: "assistant", ...fields }] })
const called = (args: unknown): JsonObject =>
  assistant({ tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: args as string } }] })

/** What cannot be bridged, by the place that the refusal must name. */
const examples: readonly (readonly [place: string, asked: JsonObject])[] = [
  ["n", { n: 2 }],
  ["n", { n: "1" }],
  ["messages", { messages: [] }],
  ["messages", { messages: "Hi" }],
  ["messages", { messages: null }],
  ["messages[1]", { messages: [hi, "Hi"] }],
  ["messages[0].role", { messages: [{ role: "critic", content: "x" }] }],
  ["messages[0].role", { messages: [{ content: "x" }] }],
  ["messages[0].content", { messages: [{ role: "user", content: 7 }] }],
  ["messages[0].content", { messages: [{ role: "user", content: { text: "x" } }] }],
  ["messages[0].content[0]", { messages: [{ role: "user", content: ["x"] }] }],
  ["messages[0].content[0].text", part({ type: "text" })],
  ["messages[0].content[0].type", part({ type: "input_audio", input_audio: { data: "AA", format: "wav" } })],
  ["messages[0].content[0].type", part({ type: "video_url", video_url: { url: "https://a.example/v" } })],
  ["messages[0].content[0].image_url", part({ type: "image_url" })],
  ["messages[0].content[0].image_url.url", part({ type: "image_url", image_url: {} })],
  ["messages[0].content[0].image_url.url", part({ type: "image_url", image_url: { url: "ftp://a.example/i" } })],
  ["messages[0].content[0].image_url.url", part({ type: "image_url", image_url: { url: "data:image/png,AAAA" } })],
  ["messages[0].content[0].image_url.url", part({ type: "image_url", image_url: { url: "data:audio/wav;base64,AA" } })],
  ["messages[0].content[0].file", part({ type: "file" })],
  ["messages[0].content[0].file.file_id", part({ type: "file", file: { file_id: "file-1" } })],
  ["messages[0].content[0].file.file_data", part({ type: "file", file: { filename: "a.pdf" } })],
  [
    "messages[0].content[0].file.file_data",
    part({ type: "file", file: { file_data: "data:application/zip;base64,AA" } }),
  ],
  [
    "messages[0].content",
    { messages: [{ role: "system", content: [{ type: "image_url", image_url: { url: "https://a.example/i" } }] }] },
  ],
  ["messages[1].tool_calls[0].function.arguments", called('{"a":')],
  ["messages[1].tool_calls[0].function.arguments", called("[1]")],
  ["messages[1].tool_calls[0].function.arguments", called("null")],
  ["messages[1].tool_calls[0].function.arguments", called(7)],
  ["messages[1].function_call.arguments", assistant({ function_call: { name: "f", arguments: "{" } })],
  ["messages[1].tool_calls", assistant({ tool_calls: {} })],
  ["messages[1].tool_calls[0].id", assistant({ tool_calls: [{ type: "function", function: { name: "f" } }] })],
  ["messages[1].tool_calls[0].function", assistant({ tool_calls: [{ id: "a", type: "function" }] })],
  ["messages[1].tool_calls[0].function.name", assistant({ tool_calls: [{ id: "a", function: { name: "" } }] })],
  ["messages[1].tool_calls[0].type", assistant({ tool_calls: [{ id: "a", type: "custom", custom: {} }] })],
  ["messages[1].tool_call_id", { messages: [hi, { role: "tool", content: "x" }] }],
  ["messages[1].name", { messages: [hi, { role: "function", content: "x" }] }],
  ["max_tokens", { max_tokens: 0 }],
  ["max_tokens", { max_tokens: 1.5 }],
  ["max_tokens", { max_tokens: "9" }],
  ["max_completion_tokens", { max_completion_tokens: -1, max_tokens: 5 }],
  ["temperature", { temperature: "hot" }],
  ["top_p", { top_p: [] }],
  ["stop", { stop: 7 }],
  ["stop[1]", { stop: ["a", 7] }],
  ["user", { user: 7 }],
  ["response_format", { response_format: "json" }],
  ["response_format.type", { response_format: { type: "grammar" } }],
  ["response_format.json_schema", { response_format: { type: "json_schema" } }],
  ["response_format.json_schema.schema", { response_format: { type: "json_schema", json_schema: { name: "n" } } }],
  ["tools", { tools: {} }],
  ["tools[0].type", { tools: [{ type: "custom", custom: { name: "c" } }] }],
  ["tools[0].function", { tools: [{ type: "function" }] }],
  ["tools[0].function.name", { tools: [{ type: "function", function: {} }] }],
  ["tools[0].function.parameters", { tools: [{ type: "function", function: { name: "f", parameters: [] } }] }],
  ["functions[0].name", { functions: [{}] }],
  ["tool_choice", { tools: [{ type: "function", function: { name: "f" } }], tool_choice: "any" }],
  [
    "tool_choice.type",
    { tools: [{ type: "function", function: { name: "f" } }], tool_choice: { type: "allowed_tools" } },
  ],
  [
    "tool_choice.function.name",
    { tools: [{ type: "function", function: { name: "f" } }], tool_choice: { type: "function" } },
  ],
  ["function_call.name", { functions: [{ name: "f" }], function_call: {} }],
]
test.each(examples)("%s is named in the refusal (%#)", (place, asked) => {
  const error = refusal(asked)
  expect(error?.code).toBe("invalid_parameter")
  expect(error?.status).toBe(400)
  expect(error?.message).toStartWith(`${place}: `)
})

test("the caller's data is not repeated in a refusal", () => {
  const secret = "data:application/zip;base64,U0VDUkVU"
  expect(refusal(part({ type: "file", file: { file_data: secret } }))?.message).not.toContain("U0VDUkVU")
})
