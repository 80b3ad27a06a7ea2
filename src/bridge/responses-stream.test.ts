import { describe, expect, test } from "bun:test"
import { readWithOpenAi, withoutParsed } from "../../test/support/openai-reader.ts"
import { checkStream } from "../../test/support/responses-check.ts"
import type { JsonObject } from "../core/json.ts"
import type { TokenUsage } from "../core/usage.ts"
import { ChatToResponsesStream, wholeResponse } from "./responses-stream.ts"

const created = 1_700_000_000
const asked = {
  model: "asked-name",
  input: "hi",
  instructions: "be brief",
  temperature: 0.5,
  tools: [{ type: "function", name: "weather" }],
  metadata: { a: "b" },
  reasoning: { effort: "low" },
}

function chunk(delta: JsonObject, finish: string | null = null, more: JsonObject = {}): string {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  return JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created, model: "up", choices, ...more })
}

const usage = {
  prompt_tokens: 20,
  prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 2 },
  completion_tokens: 9,
  completion_tokens_details: { reasoning_tokens: 4 },
}
const counted: TokenUsage = {
  input: 1,
  cachedInput: 0,
  cacheWrite: 0,
  audioInput: 0,
  output: 2,
  reasoning: 0,
  audioOutput: 0,
}
const usageChunk = JSON.stringify({ id: "chatcmpl-1", choices: [], usage })
const called = (...calls: JsonObject[]): JsonObject => ({ tool_calls: calls })

function translate(chunks: readonly string[], counted: TokenUsage | null = null) {
  const stream = new ChatToResponsesStream(asked)
  const text = chunks.map((data) => stream.read(null, data)).join("") + stream.closing(counted)
  return { stream, text, ...checkStream(text) }
}

function saidBy(response: { readonly output: readonly Record<string, unknown>[] }): unknown[] {
  return response.output.map((item) => {
    if (item.type === "function_call") return [item.name, item.arguments, item.call_id]
    return ((item.summary ?? item.content) as { text?: string; refusal?: string }[]).map((part) => part.text ?? part)
  })
}

const streams: readonly [name: string, chunks: readonly string[], said: readonly unknown[], text: string][] = [
  [
    "text",
    [chunk({ role: "assistant", content: "" }), chunk({ content: "He" }), chunk({ content: "llo" }), chunk({}, "stop")],
    [["Hello"]],
    "Hello",
  ],
  ["text with its first and last chunk in one", [chunk({ content: "Hello" }, "stop")], [["Hello"]], "Hello"],
  [
    "reasoning_content, then text",
    [chunk({ reasoning_content: "h" }), chunk({ reasoning_content: "m" }), chunk({ content: "a" }, "stop")],
    [["hm"], ["a"]],
    "a",
  ],
  [
    "reasoning, under both names",
    [chunk({ reasoning: "h", reasoning_content: "h" }), chunk({ content: "a" }, "stop")],
    [["h"], ["a"]],
    "a",
  ],
  [
    "content that comes in parts",
    [
      chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "h" }] }] }),
      chunk({ content: [{ type: "text", text: "a" }] }, "stop"),
    ],
    [["h"], ["a"]],
    "a",
  ],
  [
    "a refusal after text",
    [chunk({ content: "Well" }), chunk({ refusal: "n" }), chunk({ refusal: "o" }, "stop")],
    [["Well", { type: "refusal", refusal: "no" }]],
    "Well",
  ],
  [
    "white space between calls",
    [
      chunk({ content: "\n\n" }),
      chunk(called({ index: 0, id: "a", function: { name: "weather", arguments: "{}" } })),
      chunk({ content: "\n" }, "tool_calls"),
    ],
    [["weather", "{}", "a"]],
    "",
  ],
  [
    "text after a call",
    [
      chunk(called({ index: 0, id: "a", function: { name: "f", arguments: "{}" } })),
      chunk({ content: "done" }, "stop"),
    ],
    [["f", "{}", "a"], ["done"]],
    "done",
  ],
  [
    "a message in place of a delta",
    [JSON.stringify({ choices: [{ message: { content: "hi" }, finish_reason: "stop" }] })],
    [["hi"]],
    "hi",
  ],
  ["no finish but an end marker", [chunk({ content: "hi" }), "[DONE] "], [["hi"]], "hi"],
  ["nothing at all", ["[DONE]"], [], ""],
  [
    "an empty finish reason in every chunk",
    [chunk({ content: "h" }, ""), chunk({ content: "i" }, "null"), chunk({}, "stop")],
    [["hi"]],
    "hi",
  ],
  [
    "a finish that is repeated with everything",
    [chunk({ content: "hi" }, "stop"), chunk({ content: "hi" }, "stop")],
    [["hi"]],
    "hi",
  ],
  [
    "a second choice",
    [
      chunk({ content: "hi" }),
      JSON.stringify({ choices: [{ index: 1, delta: { content: "no" }, finish_reason: "stop" }] }),
      chunk({}, "stop"),
    ],
    [["hi"]],
    "hi",
  ],
]

describe.each(streams)("%s", (_name, chunks, said, text) => {
  test("becomes the standard sequence", () => {
    const { response, events } = translate([...chunks, usageChunk])
    expect(saidBy(response)).toEqual([...said])
    expect(events.at(-1)?.type).toBe("response.completed")
    expect(JSON.stringify(events)).not.toContain("[DONE]")
  })

  test("is read by the openai package", async () => {
    const read = await readWithOpenAi(translate([...chunks, usageChunk]).text)
    expect(saidBy(withoutParsed(read))).toEqual([...said])
    expect(read.output_text).toBe(text)
  })
})

test("a response repeats the request, under the name the caller asked for", () => {
  const { response, events } = translate([chunk({ content: "hi" }, "stop"), usageChunk])
  const echo = {
    object: "response",
    created_at: created,
    model: "asked-name",
    instructions: "be brief",
    temperature: 0.5,
    top_p: 1,
    tools: asked.tools,
    tool_choice: "auto",
    metadata: { a: "b" },
    reasoning: { effort: "low", summary: null },
    text: { format: { type: "text" } },
    store: false,
    error: null,
    incomplete_details: null,
  }
  expect(response).toMatchObject({ ...echo, status: "completed" })
  expect(events[0]?.response).toMatchObject({ ...echo, status: "in_progress", usage: null, completed_at: null })
  expect(response.id).toMatch(/^resp_[0-9a-f]{32}$/)
  expect(response.output[0]?.id).toMatch(/^msg_[0-9a-f]{32}$/)
})

test("usage stands in the last event, read from wherever the upstream put it", () => {
  const expected = {
    input_tokens: 20,
    input_tokens_details: { cached_tokens: 8, cache_write_tokens: 2 },
    output_tokens: 9,
    output_tokens_details: { reasoning_tokens: 4 },
    total_tokens: 29,
  }
  const apart = translate([chunk({ content: "hi" }, "stop"), usageChunk, "[DONE]"])
  const inFinish = translate([chunk({ content: "hi" }), chunk({}, "stop", { usage })])
  expect(apart.response.usage).toEqual(expected)
  expect(inFinish.response.usage).toEqual(expected)
  expect(apart.stream.usage).toEqual({ ...counted, input: 20, cachedInput: 8, cacheWrite: 2, output: 9, reasoning: 4 })
})

test("a usage that was reported stays, though later chunks have none", () => {
  const { response } = translate([chunk({ content: "hi" }, null, { usage }), chunk({}, "stop", { usage: null })])
  expect(response.usage).toMatchObject({ total_tokens: 29 })
})

test("a usage that cannot be charged by gives way to the counted one, and to a good one after it", () => {
  const odd = JSON.stringify({ choices: [], usage: { ...usage, completion_tokens: -9 } })
  const last = translate([chunk({ content: "hi" }, "stop"), usageChunk, odd], counted)
  expect(last.stream).toMatchObject({ usage: null, usageInvalid: true })
  expect(last.response.usage).toMatchObject({ total_tokens: 3 })
  const first = translate([chunk({ content: "hi" }, "stop"), odd, usageChunk], counted)
  expect(first.stream.usageInvalid).toBe(false)
  expect(first.response.usage).toMatchObject({ total_tokens: 29 })
  expect(translate([chunk({ content: "hi" }, "stop")], counted).stream.usageInvalid).toBe(false)
})

test("a whole answer whose usage cannot be charged by is told without one", () => {
  const choices = [{ index: 0, message: { content: "hi" }, finish_reason: "stop" }]
  expect(wholeResponse({ choices, usage }, asked).usage).toMatchObject({ total_tokens: 29 })
  expect(wholeResponse({ choices, usage: { ...usage, completion_tokens: "9" } }, asked).usage).toBeNull()
})

test("what comes after the finish is neither delivered nor counted", () => {
  const calls = called({ index: 0, id: "a", function: { name: "weather", arguments: "{}" } })
  const { stream, response } = translate([
    chunk({ content: "hi" }, "stop"),
    chunk({ content: "hi" }),
    chunk(calls, "stop"),
  ])
  expect(stream.produced).toBe("hi")
  expect(saidBy(response)).toEqual([["hi"]])
})

test("counted tokens stand in for a usage that was not reported, and only then", () => {
  expect(translate([chunk({ content: "hi" }, "stop")], counted).response.usage).toMatchObject({ total_tokens: 3 })
  expect(translate([chunk({}, "stop"), usageChunk], counted).response.usage).toMatchObject({ total_tokens: 29 })
  expect(translate([chunk({}, "stop")]).response.usage).toBeNull()
})

test.each([
  ["length", "max_output_tokens"],
  ["content_filter", "content_filter"],
])("a stream that ends with %s is incomplete, its last item too", async (finish, reason) => {
  const calls = called({ index: 0, id: "a", function: { name: "weather", arguments: '{"ci' } })
  const { text, response, events } = translate([chunk({ content: "hi" }), chunk(calls), chunk({}, finish), usageChunk])
  expect(events.at(-1)?.type).toBe("response.incomplete")
  expect(response).toMatchObject({ status: "incomplete", incomplete_details: { reason }, completed_at: null })
  expect(response.output.map(({ status }) => status)).toEqual(["completed", "incomplete"])
  expect(response.output[1]?.arguments).toBe('{"ci')
  expect((await readWithOpenAi(text)).incomplete_details?.reason).toBe(reason as "content_filter")
})

test("likelihoods go with the text they belong to", () => {
  const token = (word: string) => ({
    token: word,
    logprob: -0.5,
    bytes: null,
    top_logprobs: [{ token: word, logprob: -0.5, bytes: null }],
  })
  const choice = (word: string) =>
    JSON.stringify({ choices: [{ index: 0, delta: { content: word }, logprobs: { content: [token(word)] } }] })
  const { response, events } = translate([choice("He"), choice("llo"), chunk({}, "stop")])
  const given = (word: string) => ({
    ...token(word),
    bytes: [],
    top_logprobs: [{ token: word, logprob: -0.5, bytes: [] }],
  })
  const deltas = events.filter(({ type }) => type === "response.output_text.delta")
  expect(deltas.map(({ logprobs }) => logprobs)).toEqual([[given("He")], [given("llo")]])
  expect(response.output[0]?.content).toMatchObject([{ logprobs: [given("He"), given("llo")] }])
})

describe("what the relay is told", () => {
  test("nothing has begun, and nothing is written, before the first token", () => {
    const stream = new ChatToResponsesStream(asked)
    for (const data of [
      chunk({ role: "assistant", content: "" }),
      chunk({}),
      chunk({ content: null }),
      usageChunk,
      "oops",
    ]) {
      expect(stream.read(null, data)).toBe("")
      expect(stream.begun).toBe(false)
    }
    expect(stream.read(null, chunk({ content: "x" }))).toStartWith("event: response.created\n")
    expect(stream.begun).toBe(true)
  })

  test.each([
    [chunk({ content: "x" })],
    [chunk({ reasoning: "x" })],
    [chunk({ refusal: "x" })],
    [chunk(called({ index: 0 }))],
    [chunk({ function_call: { name: "f" } })],
    [chunk({}, "stop")],
  ])("%s is a first token", (data) => {
    const stream = new ChatToResponsesStream(asked)
    expect(stream.read(null, data)).toContain("event: response.in_progress\n")
    expect(stream.begun).toBe(true)
  })

  test("a stream is complete by its finish or by its end marker, not by silence", () => {
    const stream = new ChatToResponsesStream(asked)
    stream.read(null, chunk({ content: "x" }))
    expect([stream.complete, stream.ended]).toEqual([false, false])
    stream.read(null, chunk({}, "stop"))
    expect([stream.complete, stream.ended]).toEqual([true, false])
    stream.read(null, "[DONE]")
    expect([stream.complete, stream.ended]).toEqual([true, true])
    const marked = new ChatToResponsesStream(asked)
    marked.read(null, "[DONE]")
    expect([marked.complete, marked.ended]).toEqual([true, true])
  })

  test("progress grows with every chunk that says something; text is kept for counting", () => {
    const stream = new ChatToResponsesStream(asked)
    const calls = called({ index: 0, id: "a", function: { name: "f", arguments: "{}" } })
    stream.read("ping", "{}")
    stream.read(null, "not JSON")
    expect(stream.progress).toBe(0)
    for (const data of [
      chunk({ role: "assistant" }),
      chunk({ reasoning: "r" }),
      chunk({ content: "t" }),
      chunk(calls),
    ]) {
      const before = stream.progress
      stream.read(null, data)
      expect(stream.progress).toBe(before + 1)
    }
    expect(stream.produced).toBe("rtf{}")
  })
})

describe("an upstream that fails", () => {
  test("in mid-stream: the failure comes in the response's own words, with what was delivered", async () => {
    const stream = new ChatToResponsesStream(asked)
    const begun = stream.read(null, chunk({ content: "Hel" }))
    const data = JSON.stringify({ error: { message: "broke", type: "server_error", code: "overloaded" } })
    const text = begun + stream.read(null, data)
    expect([stream.error, stream.complete, stream.closing(null)]).toEqual([data, false, ""])
    const { response } = checkStream(text)
    expect(response).toMatchObject({ status: "failed", error: { code: "overloaded", message: "broke" } })
    expect(response.output).toMatchObject([{ status: "incomplete", content: [{ text: "Hel" }] }])
    expect(await readWithOpenAi(text)).toMatchObject({ status: "failed", error: { code: "overloaded" } })
    expect(stream.read(null, chunk({ content: "more" }))).toBe("")
  })

  test("at once: nothing has begun, so that another upstream may be asked", () => {
    const stream = new ChatToResponsesStream(asked)
    checkStream(stream.read("error", "busy"))
    expect([stream.begun, stream.error, stream.progress]).toEqual([false, "busy", 1])
  })

  test.each([
    ['{"error":"busy"}', "server_error", "busy"],
    ['{"error":{"code":429,"message":"slow down"}}', "rate_limit_exceeded", "slow down"],
    ['{"error":{}}', "server_error", "the upstream ended its answer with an error (server_error)"],
    ['{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}', "insufficient_system_resource", ""],
    ['{"choices":[{"delta":{},"finish_reason":"error","error":{"message":"x"}}]}', "server_error", "x"],
  ])("%s", (data, code, message) => {
    const stream = new ChatToResponsesStream(asked)
    const { response } = checkStream(stream.read(null, data))
    expect(stream.error).toBe(data)
    expect(response.error).toMatchObject({ code })
    expect((response.error as { message: string }).message).toContain(message)
  })

  test("or is given up by the gateway: the caller is told the code", () => {
    const stream = new ChatToResponsesStream(asked)
    const begun = stream.read(null, chunk({ content: "Hel" }))
    const { response } = checkStream(begun + stream.failing("stream_silence_timeout", "nothing came"))
    expect(response.error).toEqual({ code: "stream_silence_timeout", message: "nothing came" })
  })
})
