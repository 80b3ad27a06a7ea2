import { describe, expect, test } from "bun:test"
import { createAnthropic } from "@ai-sdk/anthropic"
import { generateText } from "ai"
import { GatewayError } from "../core/errors.ts"
import type { JsonObject, JsonValue } from "../core/json.ts"
import { readMessagesUsage } from "../core/messages-usage.ts"
import { chatToMessagesAnswer } from "./messages-to-chat-answer.ts"
import { thinkingMarker, toolNames } from "./messages-to-chat-parts.ts"

const asked: JsonObject = { model: "asked-model", messages: [], stop_sequences: ["END"] }
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const hi = { role: "assistant", content: "hi" }
const call = (fields: JsonObject = {}, args: JsonValue = '{"a":1}') => ({
  id: "call_1",
  type: "function",
  function: { name: "f", arguments: args },
  ...fields,
})
const calling = (...calls: JsonObject[]) => ({ role: "assistant", content: null, tool_calls: calls })
const text = (words: string) => ({ type: "text", text: words })
const thinking = (words: string) => ({ type: "thinking", thinking: words, signature: thinkingMarker })
const use = (input: JsonObject = { a: 1 }) => ({ type: "tool_use", id: "call_1", name: "f", input })

function completion(message: JsonObject, finish_reason: string | null = "stop", choice: JsonObject = {}): JsonObject {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "upstream-model",
    choices: [{ index: 0, message, finish_reason, ...choice }],
    usage,
  }
}

interface Message extends JsonObject {
  readonly id: string
  readonly content: readonly JsonObject[]
}

function answer(answered: JsonObject, from: JsonObject = asked): Message {
  return JSON.parse(JSON.stringify(chatToMessagesAnswer(answered, from)))
}

const contentOf = (message: JsonObject, finish = "stop") => answer(completion(message, finish)).content

test("vectors 46 and 58: a plain answer is a whole message by the name that was asked for", () => {
  const whole = answer(completion(hi))
  expect(whole).toEqual({
    id: expect.stringMatching(/^msg_[0-9a-f]{32}$/),
    type: "message",
    role: "assistant",
    model: "asked-model",
    content: [text("hi")],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 3, output_tokens: 2, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
  } as unknown as Message)
  expect(answer(completion(hi)).id).not.toBe(whole.id)
})

describe("calls", () => {
  test("vector 47: have their arguments as an object", () => {
    const whole = answer(completion(calling(call()), "tool_calls"))
    expect(whole).toMatchObject({ content: [use()], stop_reason: "tool_use" })
  })

  test("vector 48: end the turn whatever the upstream says of its end", () => {
    for (const finish of ["stop", null, "eos"]) {
      expect(answer(completion(calling(call()), finish)).stop_reason).toBe("tool_use")
    }
  })

  test.each([
    ["", {}],
    [null, {}],
    ["[1]", {}],
    ["7", {}],
    ['"{\\"a\\":1}"', { a: 1 }],
    ['"words"', {}],
    ["{garbage", {}],
    ['"', {}],
    [{ a: 1 }, { a: 1 }],
  ])("vector 51: arguments %j are the input %j", (args, input) => {
    expect(contentOf(calling(call({}, args)))).toEqual([use(input)])
  })

  test("vector 52: have ids that can be answered", () => {
    const without = call({ id: undefined })
    const ids = contentOf(calling(call(), call(), without, call({ id: "" }))).map(({ id }) => String(id))
    expect(ids[0]).toBe("call_1")
    expect(new Set(ids).size).toBe(4)
    for (const id of ids.slice(1)) expect(id).toMatch(/^toolu_[0-9a-f]{32}$/)
    const history = { ...asked, messages: [{ role: "assistant", content: [use()] }] }
    expect(answer(completion(calling(call())), history).content[0]?.id).toMatch(/^toolu_/)
  })

  test("of the older form are calls too; those without a name are none", () => {
    const legacy = { role: "assistant", content: null, function_call: { name: "f", arguments: '{"a":1}' } }
    expect(contentOf(legacy, "function_call")).toEqual([{ ...use(), id: expect.stringMatching(/^toolu_/) }])
    const whole = answer(completion(calling({ id: "x", type: "function" }), "tool_calls"))
    expect(whole).toMatchObject({ content: [], stop_reason: "end_turn" })
  })

  test("have the names that the caller knows", () => {
    const long = `mcp__${"x".repeat(80)}`
    const from = { ...asked, tools: [{ name: long }] }
    const called = { name: toolNames(from, 64).toUpstream(long), arguments: "{}" }
    expect(answer(completion(calling(call({ function: called }))), from).content).toMatchObject([{ name: long }])
  })
})

describe("the end", () => {
  test("vector 49: is told by the upstream's reason or its refusal", () => {
    expect(answer(completion(hi, "length")).stop_reason).toBe("max_tokens")
    expect(answer(completion(hi, "content_filter")).stop_reason).toBe("refusal")
    const refused = { role: "assistant", content: "Well.", refusal: "I cannot." }
    expect(answer(completion(refused))).toMatchObject({
      content: [text("Well."), text("I cannot.")],
      stop_reason: "refusal",
    })
  })

  test("names the stop sequence where the server does", () => {
    for (const choice of [
      { stop_reason: "END" },
      { matched_stop: "END" },
      { stop_reason: null, matched_stop: "END" },
    ]) {
      expect(answer(completion(hi, "stop", choice))).toMatchObject({
        stop_reason: "stop_sequence",
        stop_sequence: "END",
      })
    }
    expect(answer(completion(hi, "stop", { stop_reason: 128009 }))).toMatchObject({
      stop_reason: "end_turn",
      stop_sequence: null,
    })
  })

  test("that is a breakdown is an error", () => {
    expect(() => answer(completion(hi, "insufficient_system_resource"))).toThrow(
      expect.objectContaining({
        code: "upstream_error",
        message: expect.stringContaining("insufficient_system_resource"),
      }),
    )
  })
})

describe("content", () => {
  test("vector 50: reasoning is thinking, once, with a signature", () => {
    expect(contentOf({ role: "assistant", content: null, reasoning: "r" })).toEqual([thinking("r")])
    const both = { role: "assistant", content: "a", reasoning_content: "r", reasoning: "r" }
    expect(contentOf(both)).toEqual([thinking("r"), text("a")])
    expect(contentOf({ ...both, reasoning_content: {}, reasoning: [1] })).toEqual([text("a")])
  })

  test("stands in the order thinking, text, calls", () => {
    const message = { ...calling(call()), content: "a", reasoning_content: "r" }
    expect(contentOf(message)).toEqual([thinking("r"), text("a"), use()])
  })

  test("vector 57: in parts is joined", () => {
    const parts = [text("a"), { type: "audio" }, text("b"), "x"]
    expect(contentOf({ role: "assistant", content: parts })).toEqual([text("ab")])
  })

  test("of nothing but space is none", () => {
    for (const content of ["", " \n", null, undefined]) expect(contentOf({ role: "assistant", content })).toEqual([])
    expect(contentOf({ ...calling(call()), content: "\n\n" })).toEqual([use()])
  })

  test("vector 60: logprobs, annotations and the like are ignored", () => {
    const message = { ...hi, annotations: [{ type: "url_citation" }], audio: null }
    const whole = answer({ ...completion(message, "stop", { logprobs: { content: [] } }), system_fingerprint: "fp" })
    expect(whole.content).toEqual([text("hi")])
    expect(Object.keys(whole).sort()).toEqual(Object.keys(answer(completion(hi))).sort())
  })
})

describe("choices", () => {
  test("vector 55: of two the first is taken, which is the one of index 0", () => {
    const second = { index: 1, message: { role: "assistant", content: "no" }, finish_reason: "length" }
    const first = { index: 0, message: hi, finish_reason: "stop" }
    for (const choices of [
      [first, second],
      [second, first],
      [{ message: hi }, second],
    ] as const) {
      expect(answer({ choices, usage })).toMatchObject({ content: [text("hi")], stop_reason: "end_turn" })
    }
  })

  test.each([[[]], [undefined], [null], ["x"], [[null]], [[{ index: 0 }]], [[{ message: "x" }]]])(
    "vector 56: %j are no answer",
    (choices) => {
      const read = () => chatToMessagesAnswer({ choices, usage } as JsonObject, asked)
      expect(read).toThrow(GatewayError)
      expect(read).toThrow(
        expect.objectContaining({ code: "upstream_invalid_response", status: 502, type: "api_error" }),
      )
    },
  )
})

describe("usage", () => {
  const told = (reported: JsonValue | undefined) => answer({ ...completion(hi), usage: reported }).usage

  test("vector 53: cached and cache-written tokens stand beside the input", () => {
    const details = { prompt_tokens_details: { cached_tokens: 90, cache_write_tokens: 4 } }
    const reported = told({ prompt_tokens: 100, completion_tokens: 1, ...details })
    expect(reported).toMatchObject({
      input_tokens: 6,
      cache_read_input_tokens: 90,
      cache_creation_input_tokens: 4,
      output_tokens: 1,
    })
    expect(readMessagesUsage(reported)).toMatchObject({ input: 100, cachedInput: 90, cacheWrite: 4, output: 1 })
    expect(told({ prompt_tokens: 100, completion_tokens: 1, prompt_cache_hit_tokens: 90 })).toMatchObject({
      input_tokens: 10,
      cache_read_input_tokens: 90,
    })
  })

  test("reasoning is output, and told as thinking", () => {
    const counts = { prompt_tokens: 32, completion_tokens: 9, completion_tokens_details: { reasoning_tokens: 4 } }
    expect(told(counts)).toMatchObject({ output_tokens: 9, output_tokens_details: { thinking_tokens: 4 } })
    expect(told({ ...counts, total_tokens: 45 })).toMatchObject({ output_tokens: 13 })
  })

  test("vector 54: that is missing, or none to charge by, is what was counted", () => {
    const counted = { input: 7, cachedInput: 0, cacheWrite: 0, audioInput: 0, output: 4, reasoning: 0, audioOutput: 0 }
    for (const reported of [undefined, null, {}, "x", { prompt_tokens: 1, completion_tokens: null }]) {
      const answered = { ...completion(hi), usage: reported } as JsonObject
      expect(chatToMessagesAnswer(answered, asked, counted).usage).toMatchObject({ input_tokens: 7, output_tokens: 4 })
      expect(chatToMessagesAnswer(answered, asked).usage).toMatchObject({ input_tokens: 0, output_tokens: 0 })
    }
    expect(chatToMessagesAnswer(completion(hi), asked, counted).usage).toMatchObject({ input_tokens: 3 })
  })
})

describe("the AI SDK reads", () => {
  const read = (answered: JsonObject) => {
    const fetch = async () => Response.json(chatToMessagesAnswer(answered, asked))
    const provider = createAnthropic({ apiKey: "k", fetch: Object.assign(fetch, { preconnect: () => {} }) })
    return generateText({ model: provider("asked-model"), prompt: "x", maxOutputTokens: 9, maxRetries: 0 })
  }

  test("vector 59: text, calls and thinking", async () => {
    const plain = await read(completion(hi))
    expect(plain).toMatchObject({ text: "hi", finishReason: "stop" })
    expect(plain.usage).toMatchObject({ inputTokens: 3, outputTokens: 2 })
    const called = await read(completion(calling(call()), "tool_calls"))
    expect(called.finishReason).toBe("tool-calls")
    expect(called.toolCalls).toMatchObject([{ toolCallId: "call_1", toolName: "f", input: { a: 1 } }])
    const reasoned = await read(completion({ ...hi, reasoning_content: "r" }))
    expect(reasoned).toMatchObject({ text: "hi", reasoningText: "r" })
  })
})
