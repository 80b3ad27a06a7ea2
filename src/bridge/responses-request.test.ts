import { describe, expect, test } from "bun:test"
import { GatewayError } from "../core/errors.ts"
import type { JsonObject } from "../core/json.ts"
import { responsesToChat } from "./responses-to-chat.ts"
import type { BridgeOptions } from "./translator.ts"

const options: BridgeOptions = { upstreamModel: "upstream-name", stream: true, streamOptions: true }

function request(asked: JsonObject, how: Partial<BridgeOptions> = {}): JsonObject {
  return responsesToChat.request({ model: "asked-name", input: "hi", ...asked }, { ...options, ...how })
}

const weather = { type: "function", name: "weather", parameters: { type: "object", properties: { city: {} } } }
const chatWeather = { type: "function", function: { name: "weather", parameters: weather.parameters } }
const clock = { type: "function", name: "clock", parameters: null, description: "tells the time", strict: true }
const chatClock = {
  type: "function",
  function: {
    name: "clock",
    description: "tells the time",
    parameters: { type: "object", properties: {} },
    strict: true,
  },
}

test("a text asks the upstream's model for a stream with usage", () => {
  expect(request({})).toEqual({
    model: "upstream-name",
    messages: [{ role: "user", content: "hi" }],
    stream: true,
    stream_options: { include_usage: true },
  })
})

test("an upstream that refuses stream_options gets none, and a whole answer is asked for without a word on streams", () => {
  expect(request({}, { streamOptions: false })).not.toHaveProperty("stream_options")
  const whole = request({ stream: true }, { stream: false })
  expect(whole).not.toHaveProperty("stream")
  expect(whole).not.toHaveProperty("stream_options")
})

const schema = { type: "object", properties: { a: { type: "string" } } }
const translated: readonly [name: string, asked: JsonObject, expected: JsonObject][] = [
  ["sampling, zeros included", { temperature: 0, top_p: 0 }, { temperature: 0, top_p: 0 }],
  ["the token limit", { max_output_tokens: 12 }, { max_tokens: 12 }],
  ["the reasoning effort", { reasoning: { effort: "low", summary: "auto" } }, { reasoning_effort: "low" }],
  ["likely alternatives", { top_logprobs: 3 }, { logprobs: true, top_logprobs: 3 }],
  ["likelihoods alone", { include: ["message.output_text.logprobs"] }, { logprobs: true }],
  ["who asks", { user: "u", metadata: { a: "b" } }, { user: "u", metadata: { a: "b" } }],
  ["a service tier that was chosen", { service_tier: "flex" }, { service_tier: "flex" }],
  [
    "the plain text format and verbosity",
    { text: { format: { type: "text" }, verbosity: "low" } },
    { verbosity: "low" },
  ],
  ["JSON mode", { text: { format: { type: "json_object" } } }, { response_format: { type: "json_object" } }],
  [
    "a JSON schema",
    { text: { format: { type: "json_schema", name: "n", schema, strict: true, description: "d" } } },
    { response_format: { type: "json_schema", json_schema: { name: "n", schema, strict: true, description: "d" } } },
  ],
  ["tools", { tools: [weather, clock] }, { tools: [chatWeather, chatClock] }],
  [
    "one call at a time",
    { tools: [weather], tool_choice: "required", parallel_tool_calls: false },
    { tools: [chatWeather], tool_choice: "required", parallel_tool_calls: false },
  ],
  [
    "tools that may not be called",
    { tools: [weather], tool_choice: "none" },
    { tools: [chatWeather], tool_choice: "none" },
  ],
  [
    "one tool by name",
    { tools: [weather], tool_choice: { type: "function", name: "weather" } },
    { tools: [chatWeather], tool_choice: { type: "function", function: { name: "weather" } } },
  ],
  [
    "some of the tools",
    {
      tools: [weather, clock],
      tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "clock" }] },
    },
    { tools: [chatClock], tool_choice: "required" },
  ],
  ["a choice among no tools", { tools: [], tool_choice: "auto", parallel_tool_calls: true }, {}],
  [
    "what only OpenAI's own service knows",
    {
      store: true,
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: "k",
      safety_identifier: "s",
      truncation: "auto",
      service_tier: "auto",
      max_tool_calls: 3,
      stream_options: { include_obfuscation: false },
      metadata: {},
      unheard_of: 1,
    },
    {},
  ],
  [
    "nulls",
    {
      instructions: null,
      temperature: null,
      top_p: null,
      max_output_tokens: null,
      reasoning: null,
      text: null,
      tools: null,
      tool_choice: null,
      user: null,
      metadata: null,
      previous_response_id: null,
      conversation: null,
      prompt: null,
      background: false,
      top_logprobs: null,
      include: null,
      service_tier: null,
      parallel_tool_calls: null,
    },
    {},
  ],
]

test.each(translated)("translated: %s", (_name, asked, expected) => {
  const { model, messages, stream, stream_options, ...rest } = request(asked)
  expect(rest).toEqual(expected)
})

const refused: readonly [place: string, asked: JsonObject][] = [
  ["previous_response_id", { previous_response_id: "resp_1" }],
  ["conversation", { conversation: { id: "conv_1" } }],
  ["prompt", { prompt: { id: "pmpt_1" } }],
  ["background", { background: true }],
  ...["web_search", "file_search", "code_interpreter", "computer_use_preview", "mcp", "image_generation", "custom"].map(
    (type): [string, JsonObject] => ["tools[1].type", { tools: [weather, { type, name: "x" }] }],
  ),
  ["tools", { tools: "weather" }],
  ["tools[0].name", { tools: [{ type: "function", parameters: {} }] }],
  ["tools[0].parameters", { tools: [{ ...weather, parameters: "none" }] }],
  ["tool_choice", { tools: [weather], tool_choice: "maybe" }],
  ["tool_choice.type", { tools: [weather], tool_choice: { type: "web_search" } }],
  [
    "tool_choice.tools[0].type",
    { tools: [weather], tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "mcp" }] } },
  ],
  ["tool_choice", { tool_choice: "required" }],
  ["tool_choice", { tool_choice: { type: "function", name: "weather" } }],
  ["text.format.type", { text: { format: { type: "grammar" } } }],
  ["text.format.schema", { text: { format: { type: "json_schema", name: "n" } } }],
  ["temperature", { temperature: "hot" }],
  ["max_output_tokens", { max_output_tokens: "many" }],
  ["reasoning.effort", { reasoning: { effort: 3 } }],
  ["instructions", { instructions: [{ role: "developer", content: "x" }] }],
  ["input", { input: null }],
  ["input", { input: [] }],
  ["input", { input: { role: "user", content: "hi" } }],
  ["input[0]", { input: ["hi"] }],
  ["input[0].type", { input: [{ type: "item_reference", id: "msg_1" }] }],
  ["input[0].type", { input: [{ type: "web_search_call", id: "ws_1" }] }],
  ["input[0].type", { input: [{ text: "hi" }] }],
  ["input[0].role", { input: [{ role: "tool", content: "hi" }] }],
  ["input[0].content", { input: [{ role: "user" }] }],
  ["input[0].content[0].type", { input: [{ role: "user", content: [{ type: "hologram" }] }] }],
  ["input[0].content[0].text", { input: [{ role: "user", content: [{ type: "input_text" }] }] }],
  ["input[0].content[0].file_id", { input: [{ role: "user", content: [{ type: "input_image", file_id: "file_1" }] }] }],
  ["input[0].content[0].image_url", { input: [{ role: "user", content: [{ type: "input_image" }] }] }],
  [
    "input[0].content[0].file_url",
    { input: [{ role: "user", content: [{ type: "input_file", file_url: "https://x" }] }] },
  ],
  ["input[0].content", { input: [{ role: "system", content: [{ type: "input_image", image_url: "https://x" }] }] }],
  ["input[0].call_id", { input: [{ type: "function_call", name: "weather", arguments: "{}" }] }],
  ["input[0]", { input: [{ type: "function_call", call_id: "c", name: "weather", arguments: "{}" }] }],
  [
    "input[1].call_id",
    {
      input: [
        { role: "user", content: "x" },
        { type: "function_call_output", call_id: "c", output: "" },
      ],
    },
  ],
]

describe("what cannot be bridged is refused by its place", () => {
  test.each(refused)("%s", (place, asked) => {
    let thrown: unknown
    try {
      request(asked)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(GatewayError)
    expect(thrown).toMatchObject({ code: "invalid_parameter", status: 400 })
    expect((thrown as GatewayError).message).toStartWith(`${place}: `)
  })
})
