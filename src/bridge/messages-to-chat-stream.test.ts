import { describe, expect, test } from "bun:test"
import {
  asked,
  bridgedStreams,
  called,
  chunk,
  done,
  finish,
  fragment,
  role,
  tokens,
  usage,
} from "../../test/support/bridged-streams.ts"
import { checkBeginning, checkMessages, messagesEvents } from "../../test/support/messages-check.ts"
import { errorEnvelope } from "../core/error-envelope.ts"
import { GatewayError } from "../core/errors.ts"
import type { JsonObject } from "../core/json.ts"
import type { TokenUsage } from "../core/usage.ts"
import { utf8 } from "../lib/bytes.ts"
import { BridgeTap } from "../relay/taps/bridge.ts"
import { messageEvents } from "./messages-events.ts"
import { messagesToChat } from "./messages-to-chat.ts"
import { chatErrorToMessages } from "./messages-to-chat-error.ts"
import { thinkingMarker } from "./messages-to-chat-parts.ts"

const counted: TokenUsage = {
  input: 30,
  cachedInput: 0,
  cacheWrite: 0,
  audioInput: 0,
  output: 4,
  reasoning: 0,
  audioOutput: 0,
}

/** Reads a whole stream and checks what comes of it. */
function translate(chunks: readonly string[], from: JsonObject = asked) {
  const stream = messagesToChat.stream(from)
  const running = chunks.map((data) => stream.read(null, data)).join("")
  expect(stream).toMatchObject({ complete: true, error: null })
  const text = running + stream.closing(counted)
  return { stream, running, text, ...checkMessages(text) }
}

/** Reads the beginning of a stream; nothing in it may say that it ended well. */
function begin(chunks: readonly string[]) {
  const stream = messagesToChat.stream(asked)
  const text = chunks.map((data) => stream.read(null, data)).join("")
  return { stream, text, events: checkBeginning(text) }
}

/** The blocks of a message in short. */
function inShort({ content }: { readonly content: readonly Readonly<Record<string, unknown>>[] }): string[] {
  return content.map((block, index) => {
    if (block.type === "text") return `T${index}:${block.text}`
    if (block.type === "thinking") return `K${index}:${block.thinking}`
    return `C${index}:${block.id} ${block.name} ${JSON.stringify(block.input)}`
  })
}

const typesOf = (text: string): string[] => messagesEvents(text).map(({ type }) => type)

describe.each([...bridgedStreams])("vector $vector: $name", ({ chunks, blocks, stop, whole }) => {
  test("the blocks, the stop reason and the usage are told, each once", () => {
    const { message, text, running } = translate(chunks)
    expect(inShort(message)).toEqual([...blocks])
    expect(message).toMatchObject({ stop_reason: stop, usage: { input_tokens: 5, output_tokens: 2 } })
    expect(message.model).toBe("asked-name")
    expect(typesOf(running)).not.toContain("message_delta")
    expect(text).not.toContain("[DONE]")
  })

  test("vector 85: the usage of message_start is zero", () => {
    expect(translate(chunks).events[0]!.message!.usage).toEqual({
      input_tokens: 0,
      output_tokens: 0,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
    })
  })

  test("vector 78: the events of a whole answer are those of a stream", () => {
    const answer = messagesToChat.answer(whole, asked)
    const { message } = checkMessages(messageEvents(answer))
    expect<unknown>(message).toEqual(answer)
  })
})

test("vector 61: text goes on as it comes", () => {
  const stream = messagesToChat.stream(asked)
  expect([stream.read(null, role), stream.begun]).toEqual(["", false])
  const first = stream.read(null, chunk({ content: "He" }))
  expect(typesOf(first)).toEqual(["message_start", "content_block_start", "content_block_delta"])
  expect(stream.begun).toBe(true)
  expect(stream.read(null, chunk({ content: "llo" }))).toBe(
    `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"llo"}}\n\n`,
  )
})

test("vector 61: the last block is closed with the finish, the message only at the end", () => {
  const { stream } = begin([chunk({ content: "He" })])
  expect(typesOf(stream.read(null, finish("stop")))).toEqual(["content_block_stop"])
  expect([stream.read(null, usage(5, 2)), stream.read(null, done)]).toEqual(["", ""])
  expect(typesOf(stream.closing(null))).toEqual(["message_delta", "message_stop"])
})

test("vector 62: the signature comes directly before the end of the thinking", () => {
  const { events, message } = translate([chunk({ reasoning_content: "r" }), chunk({ content: "a" }), finish("stop")])
  const stop = events.findIndex(({ type, index }) => type === "content_block_stop" && index === 0)
  expect(events[stop - 1]!.delta).toEqual({ type: "signature_delta", signature: thinkingMarker })
  expect(message.content[0]).toEqual({ type: "thinking", thinking: "r", signature: thinkingMarker })
})

test("vector 65: the second call starts only after the first has stopped", () => {
  const [first, second] = [fragment(0, "a", "f", '{"x":1'), fragment(1, "b", "f", '{"y":2}')]
  const stream = messagesToChat.stream(asked)
  stream.read(null, chunk(called(first)))
  expect(stream.read(null, chunk(called(second)))).toBe("")
  const rest = stream.read(null, chunk(called(fragment(0, null, null, "}"))))
  const start = ["content_block_start", "content_block_delta"]
  expect(typesOf(rest)).toEqual(["content_block_delta", "content_block_stop", ...start])
})

const hello = [chunk({ content: "Hello" })]

test("vector 69: without a usage the counted one is told", () => {
  const { message, stream } = translate([...hello, finish("stop"), done])
  expect([stream.usage, stream.usageInvalid]).toEqual([null, false])
  expect(message.usage).toMatchObject({ input_tokens: 30, output_tokens: 4 })
})

test("vector 69: numbers are told even where nobody counted", () => {
  const { stream } = begin([...hello, finish("stop"), done])
  expect(messagesEvents(stream.closing(null)).at(-2)!.usage).toMatchObject({ input_tokens: 0, output_tokens: 0 })
})

test("vector 70: a usage before the finish counts as one after it", () => {
  const before = translate([...hello, usage(7, 3), finish("stop"), done])
  const after = translate([...hello, finish("stop"), usage(7, 3), done])
  expect(before.message).toEqual({ ...after.message, id: before.message.id })
  expect(before.message.usage).toMatchObject({ input_tokens: 7, output_tokens: 3 })
})

test("vector 71: a usage of null does not count", () => {
  const none = { usage: null }
  const { message } = translate([chunk({ content: "Hi" }, null, none), chunk({}, "stop", none), usage(7, 3), done])
  expect(message.usage).toMatchObject({ input_tokens: 7, output_tokens: 3 })
})

test("the last usage wins; one that cannot be charged by gives way to the counted one", () => {
  const growing = [chunk({ content: "a" }, null, { usage: tokens(7, 1) }), chunk({}, "stop", { usage: tokens(7, 2) })]
  expect(translate(growing).message.usage).toMatchObject({ input_tokens: 7, output_tokens: 2 })
  const { message, stream } = translate([...growing, usage(7, -2), done])
  expect([stream.usage, stream.usageInvalid]).toEqual([null, true])
  expect(message.usage).toMatchObject({ input_tokens: 30, output_tokens: 4 })
})

test("cached and reasoning tokens are told apart", () => {
  const told = {
    ...tokens(100, 9),
    prompt_tokens_details: { cached_tokens: 90, cache_write_tokens: 4 },
    completion_tokens_details: { reasoning_tokens: 5 },
  }
  expect(translate([...hello, chunk({}, "stop", { usage: told })]).message.usage).toEqual({
    input_tokens: 6,
    output_tokens: 9,
    cache_creation_input_tokens: 4,
    cache_read_input_tokens: 90,
    output_tokens_details: { thinking_tokens: 5 },
  })
})

test("vector 72: a finish without an end marker is a proper end", () => {
  const { message, stream } = translate([...hello, finish("stop")])
  expect([stream.ended, stream.complete, message.stop_reason]).toEqual([false, true, "end_turn"])
})

test("an end marker without a finish is a proper end", () => {
  const { message, stream } = translate([...hello, chunk(called(fragment(0, "a", "f", ""))), "[DONE] "])
  expect([stream.ended, message.stop_reason, inShort(message)]).toEqual([true, "tool_use", ["T0:Hello", "C1:a f {}"]])
})

test("vector 73: content in the first chunk is not lost", () => {
  const { message } = translate([chunk({ role: "assistant", content: "Hi" }), chunk({ content: "!" }, "stop")])
  expect(inShort(message)).toEqual(["T0:Hi!"])
})

test("vector 74: a message of nothing has its start and its end", () => {
  const { events } = translate([chunk({ content: null }), chunk({ content: "" }), finish("stop"), done])
  expect(events.map(({ type }) => type)).toEqual(["message_start", "message_delta", "message_stop"])
})

const silent: readonly [name: string, data: string][] = [
  ["vector 75: a keep-alive chunk", chunk({})],
  ["vector 75: a role", role],
  ["vector 75: empty words", chunk({ content: "", reasoning_content: "", refusal: "", tool_calls: [] })],
  ["vector 76: a chunk without choices", JSON.stringify({ id: "x", prompt_filter_results: [] })],
  ["vector 76: a chunk without any", JSON.stringify({ id: "x", choices: [] })],
  ["vector 77: annotations", chunk({ annotations: [{ type: "url_citation" }] })],
  ["words that are no JSON", "nonsense"],
  ["another choice", JSON.stringify({ choices: [{ index: 1, delta: { content: "x" }, finish_reason: "stop" }] })],
]

test.each([...silent])("%s makes no event and is no beginning", (_, data) => {
  const stream = messagesToChat.stream(asked)
  expect([stream.read(null, data), stream.begun, stream.complete]).toEqual(["", false, false])
  stream.read(null, hello[0]!)
  expect(stream.read(null, data)).toBe("")
})

test("chunks are progress, what is none of the protocol is not", () => {
  const { stream } = begin([role, chunk({}), usage(5, 2), "nonsense", JSON.stringify({ id: "x" }), done])
  expect(stream.progress).toBe(3)
})

test("vector 77: log probabilities are ignored", () => {
  const logprobs = { content: [{ token: "Hi", logprob: -1, bytes: null, top_logprobs: [] }] }
  const data = JSON.stringify({ choices: [{ index: 0, delta: { content: "Hi" }, logprobs }] })
  expect(translate([data, finish("stop")]).text).not.toContain("logprob")
})

test("vector 78: a whole message in place of a delta is read as well", () => {
  const { whole, blocks } = bridgedStreams[4]!
  const { message } = translate([JSON.stringify(whole)])
  expect(inShort(message)).toEqual([...blocks])
})

test("vector 79: a refusal before the stream is an envelope, not an event", () => {
  const { status, body } = chatErrorToMessages(429, { error: { message: "slow down", code: "rate_limit_exceeded" } })
  expect([status, body]).toMatchObject([429, { type: "error", error: { type: "rate_limit_error" } }])
})

test("vector 80: a stream that breaks off is not complete, and an error can follow it", () => {
  const stream = messagesToChat.stream(asked)
  const tap = new BridgeTap(stream, (error, id, dialect) =>
    utf8(`event: error\ndata: ${errorEnvelope(error, id, dialect)}\n\n`),
  )
  const passed = [tap.push(utf8(`data: ${hello[0]}\n\ndata: ${hello[0]}\n\ndata: {"cho`)), tap.end()]
  expect([tap.begun, tap.state]).toEqual([true, "open"])
  passed.push(tap.errorFrame(new GatewayError("upstream_stream_truncated", "it broke off"), "req_1", "messages"))
  const events = checkBeginning(Buffer.concat(passed.filter((part) => part !== null)).toString())
  expect(events.at(-1)!.error).toMatchObject({ type: "api_error", code: "upstream_stream_truncated" })
})

describe("vector 81: an error in mid-stream", () => {
  const errors: readonly [name: string, event: string | null, data: string, type: string, message: string][] = [
    ["by its code", null, '{"error":{"code":"overloaded","message":"Busy"}}', "overloaded_error", "Busy"],
    ["by a number", null, '{"error":{"code":429,"message":"Slow"}}', "rate_limit_error", "Slow"],
    ["beside choices", null, '{"error":{"message":"Broke"},"choices":[]}', "api_error", "Broke"],
    ["as an event", "error", '{"message":"Broke"}', "api_error", "Broke"],
    ["as words", "error", "Broke", "api_error", "Broke"],
    ["as a finish", null, chunk({}, "insufficient_system_resource"), "overloaded_error", "insufficient_system"],
  ]
  test.each([...errors])("%s is told as an error, and nothing follows it", (_, event, data, type, message) => {
    const { stream, text } = begin(hello)
    const frames = stream.read(event, data)
    const last = checkBeginning(text + frames).at(-1)!
    expect(last).toMatchObject({ type: "error", error: { type, message: expect.stringContaining(message) } })
    expect([stream.error, stream.complete]).toEqual([data, false])
    expect([stream.read(null, finish("stop")), stream.closing(counted)]).toEqual(["", ""])
  })

  test("an error as the first event leaves no trace of a message", () => {
    const { events, stream } = begin(['{"error":{"message":"No"}}'])
    expect([events.map(({ type }) => type), stream.begun]).toEqual([["error"], false])
  })
})

test("vector 84: ids of messages differ, and those of calls are unique", () => {
  const chunks = [chunk(called(fragment(0, "a", "f", "{}"), fragment(1, "a", "weather", "{}"))), finish("stop")]
  const [one, two] = [translate(chunks).message, translate(chunks).message]
  expect(one.id).not.toBe(two.id)
  const earlier = { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: {} }] }
  const { message } = translate(chunks, { ...asked, messages: [earlier] })
  expect(message.content.map(({ id }) => id)).toEqual([
    expect.stringMatching(/^toolu_/),
    expect.stringMatching(/^toolu_/),
  ])
})

test("vector 86: ten thousand deltas come out in order, each when it comes", () => {
  const stream = messagesToChat.stream(asked)
  let longest = 0
  let text = ""
  for (let number = 0; number < 10_000; number += 1) {
    const frames = stream.read(null, chunk({ content: String(number % 10) }))
    if (number > 0) longest = Math.max(longest, frames.length)
    expect(frames).not.toBe("")
    text += frames
  }
  expect(longest).toBeLessThan(200)
  const { message } = checkMessages(text + stream.closing(counted))
  expect(message.content).toEqual([{ type: "text", text: "0123456789".repeat(1000) }])
  expect(stream.produced).toBe("0123456789".repeat(1000))
})

test("vector 87: text that looks like the protocol stays text", () => {
  const odd = "a\nb\r\n\n\u2028\u2029\u0085😀 data: x\n\nevent: y\\\"'"
  const args = JSON.stringify({ odd })
  const chunks = [
    ...Array.from({ length: odd.length }, (_, at) => chunk({ content: odd[at]! })),
    chunk(called(fragment(0, "a", "f", args))),
    finish("stop"),
  ]
  expect(translate(chunks).message.content).toMatchObject([{ text: odd }, { input: { odd } }])
})

describe("the end", () => {
  const ends: readonly [name: string, chunks: readonly string[], stop: string, sequence: string | null][] = [
    ["length", [...hello, finish("length")], "max_tokens", null],
    ["length with a call", [chunk(called(fragment(0, "a", "f", "{}")), "length")], "max_tokens", null],
    ["a filter", [...hello, finish("content_filter")], "refusal", null],
    ["a refusal", [chunk({ refusal: "No" }), finish("stop")], "refusal", null],
    ["calls that never came", [...hello, finish("tool_calls")], "end_turn", null],
    ["a word nobody knows", [...hello, finish("eos")], "end_turn", null],
    ["blank reasons first", [chunk({ content: "a" }, ""), chunk({}, "null"), finish("length")], "max_tokens", null],
    ["two reasons", [...hello, finish("length"), finish("stop")], "max_tokens", null],
  ]
  test.each([...ends])("%s", (_, chunks, stop_reason, stop_sequence) => {
    expect(translate(chunks).message).toMatchObject({ stop_reason, stop_sequence })
  })

  test("a stop sequence is named where the upstream tells it and the caller gave it", () => {
    const ended = (fields: JsonObject) =>
      JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop", ...fields }] })
    const named = { stop_reason: "stop_sequence", stop_sequence: "END" }
    expect(translate([...hello, ended({ stop_reason: "END" })]).message).toMatchObject(named)
    expect(translate([...hello, ended({ matched_stop: "END" })]).message).toMatchObject(named)
    expect(translate([...hello, ended({ stop_reason: "other" })]).message.stop_reason).toBe("end_turn")
  })

  test("what follows the finish is not told again", () => {
    const { message } = translate([...hello, finish("stop"), ...hello, chunk(called(fragment(0, "a", "f", "{}")))])
    expect([inShort(message), message.stop_reason]).toEqual([["T0:Hello"], "end_turn"])
  })
})

describe("text", () => {
  const texts: readonly [name: string, chunks: readonly string[], blocks: readonly string[]][] = [
    [
      "blank text between calls is dropped",
      [chunk({ content: "\n\n" }), chunk(called(fragment(0, "a", "f", "{}")))],
      ["C0:a f {}"],
    ],
    ["blank text at the end is dropped", [chunk({ reasoning: "r" }), chunk({ content: " \n" })], ["K0:r"]],
    ["blank text before words goes with them", [chunk({ content: "\n" }), chunk({ content: "a" })], ["T0:\na"]],
    [
      "a refusal is a block of its own",
      [chunk({ content: "Well" }), chunk({ refusal: "n" }), chunk({ refusal: "o" })],
      ["T0:Well", "T1:no"],
    ],
    ["reasoning beside text comes first", [chunk({ content: "a", reasoning: "r" })], ["K0:r", "T1:a"]],
    ["reasoning_content beside text comes first", [chunk({ content: "a", reasoning_content: "r" })], ["K0:r", "T1:a"]],
    ["reasoning under both names is told once", [chunk({ reasoning: "r", reasoning_content: "r" })], ["K0:r"]],
    [
      "reasoning that comes back has a block of its own",
      [chunk({ reasoning: "r" }), chunk({ content: "a" }), chunk({ reasoning: "s" })],
      ["K0:r", "T1:a", "K2:s"],
    ],
    [
      "everything in one chunk keeps its order",
      [chunk({ content: "a", reasoning: "r", refusal: "n", ...called(fragment(0, "a", "f", "{}")) })],
      ["K0:r", "T1:a", "T2:n", "C3:a f {}"],
    ],
    [
      "content in parts",
      [
        chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "h" }] }] }),
        chunk({ content: [{ type: "text", text: "a" }] }),
      ],
      ["K0:h", "T1:a"],
    ],
  ]
  test.each([...texts])("%s", (_, chunks, blocks) => {
    const { message, stream } = translate([...chunks, finish("stop")])
    expect(inShort(message)).toEqual([...blocks])
    expect(stream.produced).not.toBe("")
  })
})
