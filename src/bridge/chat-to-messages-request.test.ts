import { describe, expect, test } from "bun:test"
import type { JsonObject } from "../core/json.ts"
import { chatToMessages } from "./chat-to-messages.ts"
import { defaultMaxTokens } from "./chat-to-messages-request.ts"

const options = { upstreamModel: "claude-x", stream: false, streamOptions: true }
const hi: JsonObject = { role: "user", content: "Hi" }

/** The bytes that would be sent, read again: a key without a value is not sent. */
function sent(fields: JsonObject, stream = false): JsonObject {
  return JSON.parse(
    JSON.stringify(chatToMessages.request({ model: "m", messages: [hi], ...fields }, { ...options, stream })),
  )
}

const text = (words: string) => ({ type: "text", text: words })

test("the smallest request", () => {
  expect(sent({})).toEqual({
    model: "claude-x",
    max_tokens: defaultMaxTokens,
    messages: [{ role: "user", content: [text("Hi")] }],
  })
})

test("a stream is asked for when the caller asked for one", () => {
  expect(sent({}, true).stream).toBe(true)
})

/** What is asked, and the fields of the upstream's request that come of it; undefined: must not be there. */
const fieldExamples: Readonly<Record<string, readonly [asked: JsonObject, expected: JsonObject]>> = {
  "max_tokens is kept": [{ max_tokens: 7 }, { max_tokens: 7 }],
  "max_completion_tokens wins": [{ max_completion_tokens: 9, max_tokens: 7 }, { max_tokens: 9 }],
  "a null limit is none": [{ max_completion_tokens: null, max_tokens: null }, { max_tokens: defaultMaxTokens }],
  "one stop": [{ stop: "END" }, { stop_sequences: ["END"] }],
  "several stops, blank ones dropped": [{ stop: ["A", " \n", "", "B"] }, { stop_sequences: ["A", "B"] }],
  "only blank stops": [{ stop: ["\n"] }, { stop_sequences: undefined }],
  "temperature zero": [{ temperature: 0 }, { temperature: 0 }],
  "temperature above the vendor's range": [{ temperature: 1.7 }, { temperature: 1 }],
  "top_p alone": [{ top_p: 1 }, { top_p: 1 }],
  "a neutral top_p beside temperature": [
    { temperature: 0.5, top_p: 1 },
    { temperature: 0.5, top_p: undefined },
  ],
  "a real top_p beside temperature": [
    { temperature: 0.5, top_p: 0.2 },
    { temperature: 0.5, top_p: 0.2 },
  ],
  "one choice": [{ n: 1 }, { n: undefined }],
  user: [{ user: "u" }, { metadata: { user_id: "u" }, user: undefined }],
  "a user of 64 characters": [{ user: "u".repeat(64) }, { metadata: { user_id: "u".repeat(64) } }],
  "the successor of user": [{ safety_identifier: "s" }, { metadata: { user_id: "s" } }],
  "an empty user": [{ user: "" }, { metadata: undefined }],
  "a plain format": [{ response_format: { type: "text" } }, { output_config: undefined, system: undefined }],
  "a schema": [
    { response_format: { type: "json_schema", json_schema: { name: "n", strict: true, schema: { type: "object" } } } },
    { output_config: { format: { type: "json_schema", schema: { type: "object" } } }, response_format: undefined },
  ],
}
test.each(Object.entries(fieldExamples))("field: %s", (_, [asked, expected]) => {
  expect(sent(asked)).toMatchObject(JSON.parse(JSON.stringify(expected)))
  for (const [name, value] of Object.entries(expected))
    if (value === undefined) expect(sent(asked)).not.toHaveProperty(name)
})

test("a user over 64 characters is sent as its SHA-256", () => {
  expect(sent({ user: "abc".repeat(40) }).metadata).toEqual({
    user_id: new Bun.SHA256().update("abc".repeat(40)).digest("hex"),
  })
})

test("asking for any JSON object becomes a line of system text after the caller's own", () => {
  const system = sent({
    messages: [{ role: "system", content: "Be brief." }, hi],
    response_format: { type: "json_object" },
  }).system
  expect(system).toMatch(/^Be brief\.\n\n.*JSON object/)
})

test("fields without a counterpart are left out", () => {
  const dropped = {
    seed: 1,
    logit_bias: {},
    logprobs: true,
    presence_penalty: 1,
    frequency_penalty: 1,
    reasoning_effort: "high",
    store: true,
    metadata: { a: "b" },
    stream_options: { include_usage: true },
    service_tier: "auto",
    unknown_x: 1,
  }
  expect(Object.keys(sent(dropped)).sort()).toEqual(["max_tokens", "messages", "model"])
})

describe("tools", () => {
  const schema = { type: "object", properties: { city: { type: "string" } } }
  const weather = {
    type: "function",
    function: { name: "weather", description: "d", parameters: schema, strict: true },
  }
  const tool = { name: "weather", description: "d", input_schema: schema }

  test("are sent with their schema and without what the vendor does not know", () => {
    expect(sent({ tools: [weather] })).toMatchObject({ tools: [tool] })
    expect(JSON.stringify(sent({ tools: [weather] }))).not.toContain("strict")
  })

  test("without parameters get an empty object schema", () => {
    const input_schema = { type: "object", properties: {} }
    expect(sent({ tools: [{ type: "function", function: { name: "now" } }] }).tools).toEqual([
      { name: "now", input_schema },
    ])
    expect(sent({ tools: [{ type: "function", function: { name: "now", parameters: {} } }] }).tools).toEqual([
      { name: "now", input_schema },
    ])
  })

  const choices: Readonly<Record<string, readonly [asked: JsonObject, expected: JsonObject | undefined]>> = {
    "no word": [{}, undefined],
    auto: [{ tool_choice: "auto" }, { type: "auto" }],
    required: [{ tool_choice: "required" }, { type: "any" }],
    none: [{ tool_choice: "none" }, { type: "none" }],
    "one function": [
      { tool_choice: { type: "function", function: { name: "weather" } } },
      { type: "tool", name: "weather" },
    ],
    "one call at a time": [{ parallel_tool_calls: false }, { type: "auto", disable_parallel_tool_use: true }],
    "one forced call": [
      { tool_choice: "required", parallel_tool_calls: false },
      { type: "any", disable_parallel_tool_use: true },
    ],
    "no call, not even in parallel": [{ tool_choice: "none", parallel_tool_calls: false }, { type: "none" }],
    "parallel calls": [{ parallel_tool_calls: true }, undefined],
  }
  test.each(Object.entries(choices))("choice: %s", (_, [asked, expected]) => {
    expect(sent({ tools: [weather], ...asked }).tool_choice).toEqual(expected)
  })

  test.each([[undefined], [null], [[]]])("a choice among no tools (%p) is not sent", (tools) => {
    const request = sent({ ...(tools === undefined ? {} : { tools }), tool_choice: "auto", parallel_tool_calls: false })
    expect(request).not.toHaveProperty("tools")
    expect(request).not.toHaveProperty("tool_choice")
  })

  test("of the older form are tools of which one is called at a time", () => {
    const functions = [weather.function]
    expect(sent({ functions })).toMatchObject({
      tools: [tool],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
    })
    expect(sent({ functions, function_call: { name: "weather" } }).tool_choice).toEqual({
      type: "tool",
      name: "weather",
      disable_parallel_tool_use: true,
    })
  })

  test("called earlier and defined no more are defined for the vendor and forbidden to the model", () => {
    const call = { id: "c1", type: "function", function: { name: "weather", arguments: "{}" } }
    const messages = [
      hi,
      { role: "assistant", tool_calls: [call] },
      { role: "tool", tool_call_id: "c1", content: "x" },
      hi,
    ]
    expect(sent({ messages })).toMatchObject({
      tools: [{ name: "weather", input_schema: { type: "object" } }],
      tool_choice: { type: "none" },
    })
  })
})
