import { describe, expect, test } from "bun:test"
import type { JsonObject } from "../core/json.ts"
import { chatToMessages } from "./chat-to-messages.ts"
import type { StreamTranslator } from "./translator.ts"

type Event = JsonObject & { readonly type: string }

const startUsage = { input_tokens: 10, cache_read_input_tokens: 4, cache_creation_input_tokens: 1, output_tokens: 1 }
const start: Event = {
  type: "message_start",
  message: { id: "msg_01Ab", type: "message", role: "assistant", model: "claude-x", content: [], usage: startUsage },
}
const open = (index: number, content_block: JsonObject): Event => ({
  type: "content_block_start",
  index,
  content_block,
})
const delta = (index: number, fields: JsonObject): Event => ({ type: "content_block_delta", index, delta: fields })
const words = (index: number, text: string) => delta(index, { type: "text_delta", text })
const thought = (index: number, thinking: string) => delta(index, { type: "thinking_delta", thinking })
const json = (index: number, partial_json: string) => delta(index, { type: "input_json_delta", partial_json })
const close = (index: number): Event => ({ type: "content_block_stop", index })
const text = (index: number) => open(index, { type: "text", text: "" })
const tool = (index: number, id: string, name: string, input: JsonObject = {}) =>
  open(index, { type: "tool_use", id, name, input })
const finish = (stop_reason: string | null, usage: JsonObject = { output_tokens: 9 }): Event => ({
  type: "message_delta",
  delta: { stop_reason, stop_sequence: null },
  usage,
})
const stop: Event = { type: "message_stop" }
const ping: Event = { type: "ping" }

function translator(asked: JsonObject = { model: "asked" }): StreamTranslator {
  return chatToMessages.stream(asked)
}

const feed = (stream: StreamTranslator, ...events: Event[]): string =>
  events.map((event) => stream.read(event.type, JSON.stringify(event))).join("")

interface Chunk {
  readonly id: string
  readonly model: string
  readonly choices: readonly { readonly delta: JsonObject; readonly finish_reason: string | null }[]
  readonly usage?: JsonObject
}

function chunksOf(frames: string): readonly Chunk[] {
  const blocks = frames.split("\n\n").filter((block) => block.startsWith("data: {"))
  return blocks.map((block) => JSON.parse(block.slice(6)))
}

/** The deltas and finishes in order, the role chunk aside. */
const story = (frames: string) =>
  chunksOf(frames)
    .flatMap(({ choices }) => choices)
    .map(({ delta, finish_reason }) => finish_reason ?? delta)
    .filter((step) => typeof step === "string" || !("role" in step))

describe("a text answer", () => {
  const stream = translator()
  const preamble = feed(stream, start, ping, text(0))
  const begunByPreamble = stream.begun
  const rest = feed(stream, words(0, "Hel"), words(0, "lo"), close(0), finish("end_turn"), stop)

  test("is role, content, finish, usage, end", () => {
    expect(chunksOf(preamble)).toEqual([
      {
        id: "chatcmpl-01Ab",
        object: "chat.completion.chunk",
        created: expect.any(Number),
        model: "claude-x",
        choices: [
          { index: 0, delta: { role: "assistant", content: "", refusal: null }, logprobs: null, finish_reason: null },
        ],
      } as unknown as Chunk,
    ])
    expect(story(rest)).toEqual([{ content: "Hel" }, { content: "lo" }, "stop"])
    const closing = stream.closing(null)
    expect(chunksOf(closing)).toMatchObject([
      { id: "chatcmpl-01Ab", choices: [], usage: { prompt_tokens: 15, completion_tokens: 9, total_tokens: 24 } },
    ])
    expect(closing).toEndWith("}\n\ndata: [DONE]\n\n")
  })

  test("begins with its first word and is whole at its end", () => {
    expect(begunByPreamble).toBe(false)
    expect(stream).toMatchObject({ begun: true, ended: true, complete: true, error: null, produced: "Hello" })
  })

  test("pings are comments and no progress", () => {
    const quiet = translator()
    expect(feed(quiet, ping)).toBe(": ping\n\n")
    expect(quiet.progress).toBe(0)
    expect(stream.progress).toBe(7)
  })

  test("nothing is read after its end", () => {
    expect(feed(stream, words(0, "more"), { type: "error", error: { type: "api_error", message: "m" } })).toBe("")
    expect(stream.error).toBeNull()
  })
})

describe("blocks", () => {
  test("thinking is reasoning; signatures, redacted thinking, citations and the vendor's own tools are not shown", () => {
    const stream = translator()
    const frames = feed(
      stream,
      start,
      open(0, { type: "thinking", thinking: "", signature: "" }),
      thought(0, "Hm"),
      delta(0, { type: "signature_delta", signature: "abc" }),
      close(0),
      open(1, { type: "redacted_thinking", data: "xyz" }),
      close(1),
      open(2, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
      json(2, '{"query":"q"}'),
      close(2),
      open(3, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }),
      close(3),
      text(4),
      words(4, "Yes"),
      delta(4, { type: "citations_delta", citation: {} }),
      close(4),
      finish("end_turn"),
      stop,
    )
    expect(story(frames)).toEqual([{ reasoning_content: "Hm" }, { content: "Yes" }, "stop"])
    expect(stream.produced).toBe("HmYes")
  })

  test("calls are numbered among themselves and take their arguments as they come", () => {
    const stream = translator()
    const frames = feed(
      stream,
      start,
      text(0),
      words(0, "Wait"),
      close(0),
      tool(1, "toolu_a", "f"),
      json(1, ""),
      json(1, '{"x"'),
      json(1, ":1}"),
      close(1),
      tool(2, "toolu_b", "g"),
      close(2),
      finish("tool_use"),
      stop,
    )
    const call = (index: number, id: string, name: string) => ({
      tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }],
    })
    const args = (index: number, piece: string) => ({ tool_calls: [{ index, function: { arguments: piece } }] })
    expect(story(frames)).toEqual([
      { content: "Wait" },
      call(0, "toolu_a", "f"),
      args(0, '{"x"'),
      args(0, ":1}"),
      call(1, "toolu_b", "g"),
      args(1, "{}"),
      "tool_calls",
    ])
    expect(stream.produced).toBe('Waitf{"x":1}g{}')
  })

  test("content that comes with a block's start is not lost", () => {
    const frames = feed(
      translator(),
      start,
      open(0, { type: "thinking", thinking: "T" }),
      open(1, { type: "text", text: "A" }),
      tool(2, "a", "f", { x: 1 }),
      finish("tool_use"),
    )
    expect(story(frames)).toMatchObject([
      { reasoning_content: "T" },
      { content: "A" },
      { tool_calls: [{ id: "a" }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"x":1}' } }] },
      "tool_calls",
    ])
  })

  test("arguments that are streamed win over those of the start", () => {
    const frames = feed(
      translator(),
      start,
      tool(0, "a", "f", { x: 1 }),
      json(0, '{"x":2}'),
      close(0),
      finish("tool_use"),
    )
    expect(frames).not.toContain('\\"x\\":1')
  })

  test("an index used again opens a new call", () => {
    const frames = feed(
      translator(),
      start,
      tool(0, "a", "f"),
      tool(0, "b", "g"),
      json(0, '{"y":1}'),
      finish("end_turn"),
    )
    expect(story(frames)).toMatchObject([
      { tool_calls: [{ index: 0, id: "a" }] },
      { tool_calls: [{ index: 0, function: { arguments: "{}" } }] },
      { tool_calls: [{ index: 1, id: "b" }] },
      { tool_calls: [{ index: 1, function: { arguments: '{"y":1}' } }] },
      "tool_calls",
    ])
  })

  test("a caller of the older form gets one function call", () => {
    const frames = feed(
      translator({ functions: [{ name: "f" }] }),
      start,
      tool(0, "a", "f"),
      json(0, '{"x":1}'),
      close(0),
      tool(1, "b", "g"),
      json(1, '{"y":1}'),
      close(1),
      finish("tool_use"),
    )
    expect(story(frames)).toEqual([
      { function_call: { name: "f", arguments: "" } },
      { function_call: { arguments: '{"x":1}' } },
      "function_call",
    ])
  })
})

describe("the first token", () => {
  const firstTokens: Readonly<Record<string, Event>> = {
    text: words(0, " "),
    thinking: thought(0, "T"),
    "a signature": delta(0, { type: "signature_delta", signature: "s" }),
    "redacted thinking": open(0, { type: "redacted_thinking", data: "x" }),
    "a call": tool(0, "a", "f"),
    "a finish": finish("refusal"),
  }
  test.each(Object.entries(firstTokens))("is %s", (_, event) => {
    const stream = translator()
    feed(stream, start)
    expect(stream.begun).toBe(false)
    feed(stream, event)
    expect(stream.begun).toBe(true)
  })

  const noTokens: Readonly<Record<string, Event>> = {
    "an empty text": words(0, ""),
    "the start of a thinking block": open(0, { type: "thinking", thinking: "", signature: "" }),
    "a tool of the vendor's own": open(0, { type: "server_tool_use", id: "s", name: "web_search", input: {} }),
    "a ping": ping,
    "an end without anything": stop,
    "a delta without a reason": finish(null),
  }
  test.each(Object.entries(noTokens))("is not %s", (_, event) => {
    const stream = translator()
    feed(stream, start, event)
    expect(stream.begun).toBe(false)
    expect(stream.complete).toBe(false)
  })
})

describe("the end", () => {
  test("is whole with a reason though the end marker is missing", () => {
    const stream = translator()
    feed(stream, start, words(0, "a"))
    expect(stream.complete).toBe(false)
    feed(stream, finish("end_turn"))
    expect(stream).toMatchObject({ complete: true, ended: false })
  })

  test("without a reason is a stop", () => {
    const stream = translator()
    expect(story(feed(stream, start, words(0, "a"), stop))).toEqual([{ content: "a" }, "stop"])
    expect(stream).toMatchObject({ complete: true, ended: true })
  })

  test("is told once, and nothing is said after it", () => {
    const frames = feed(
      translator(),
      start,
      words(0, "a"),
      finish("max_tokens"),
      finish("end_turn"),
      words(0, "b"),
      stop,
    )
    expect(story(frames)).toEqual([{ content: "a" }, "length"])
  })

  test("finishes calls that were left open", () => {
    const frames = feed(translator(), start, tool(0, "a", "f"), finish("tool_use"))
    expect(story(frames).slice(1)).toMatchObject([{ tool_calls: [{ function: { arguments: "{}" } }] }, "tool_calls"])
  })
})

describe("usage", () => {
  const after = (...events: Event[]) => {
    const stream = translator()
    feed(stream, ...events)
    return { usage: stream.usage, usageInvalid: stream.usageInvalid }
  }
  const none = { usage: null, usageInvalid: false }
  const invalid = { usage: null, usageInvalid: true }
  const expected = {
    input: 15,
    cachedInput: 4,
    cacheWrite: 1,
    audioInput: 0,
    output: 9,
    reasoning: 0,
    audioOutput: 0,
  }
  const counted = { ...expected, input: 2, cachedInput: 0, cacheWrite: 0, output: 3 }

  test("is not known before the final count, so that an answer cut short is counted", () => {
    expect(after(start, words(0, "a"))).toEqual(none)
    expect(after(start, words(0, "a"), finish("end_turn", {}))).toEqual(none)
    expect(after(start, words(0, "a"), finish("end_turn", { output_tokens: null }))).toEqual(none)
    expect(after(start, words(0, "a"), { type: "message_delta", delta: {}, usage: null })).toEqual(none)
  })

  test("is the input side of the start and the output side of the end", () => {
    expect(after(start, finish("end_turn"))).toEqual({ usage: expected, usageInvalid: false })
  })

  test("is the last that was said", () => {
    expect(after(start, finish(null, { output_tokens: 3 }), finish("end_turn")).usage).toEqual(expected)
    const repeated = {
      input_tokens: 20,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: null,
      output_tokens: 9,
    }
    expect(after(start, finish("end_turn", repeated)).usage).toEqual({ ...expected, input: 21, cachedInput: 0 })
  })

  const oddStart: Event = { type: "message_start", message: { usage: { ...startUsage, input_tokens: "10" } } }
  const bareStart: Event = { type: "message_start", message: {} }
  const oddDelta = { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: "many" }
  test.each<[string, readonly Event[]]>([
    ["an odd output", [start, finish("end_turn", { output_tokens: -1 })]],
    ["an odd input at the start", [oddStart, finish("end_turn")]],
    ["no input at all", [bareStart, finish("end_turn")]],
    ["no object", [start, oddDelta]],
    ["an odd one after a good one", [start, finish(null), finish("end_turn", { output_tokens: "9" })]],
  ])("with %s is none to charge by", (_, events) => {
    expect(after(...events)).toEqual(invalid)
  })

  test("that is good wins over an odd one before it", () => {
    const right = { usage: expected, usageInvalid: false }
    expect(after(start, finish(null, { output_tokens: -1 }), finish("end_turn"))).toEqual(right)
    expect(after(oddStart, finish("end_turn", { input_tokens: 10, output_tokens: 9 }))).toEqual(right)
  })

  test("that is counted stands in for one that is none to charge by", () => {
    const odd = translator()
    feed(odd, start, words(0, "a"), finish("end_turn", { output_tokens: -1 }), stop)
    expect(chunksOf(odd.closing(counted))[0]?.usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 3 })
  })

  test("that is counted stands in, and only where none was reported", () => {
    const silent = translator()
    feed(silent, start, words(0, "a"), finish("end_turn", {}), stop)
    expect(chunksOf(silent.closing(counted))[0]?.usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 3 })
    const told = translator()
    feed(told, start, words(0, "a"), finish("end_turn"), stop)
    expect(chunksOf(told.closing(counted))[0]?.usage).toMatchObject({ prompt_tokens: 15, completion_tokens: 9 })
  })
})

describe("odd upstreams", () => {
  test("events are known by their data where they have no name", () => {
    const stream = translator()
    const frames = [start, words(0, "a"), finish("end_turn"), stop].map((event) =>
      stream.read(null, JSON.stringify(event)),
    )
    expect(story(frames.join(""))).toEqual([{ content: "a" }, "stop"])
  })

  test("events are known by their name where their data has no type", () => {
    const stream = translator()
    expect(story(stream.read("content_block_delta", '{"index":0,"delta":{"type":"text_delta","text":"a"}}'))).toEqual([
      { content: "a" },
    ])
  })

  test("a message that was never started gets its role and an id of its own", () => {
    const stream = translator()
    const chunks = chunksOf(feed(stream, words(0, "a"), start, words(0, "b")) + stream.closing(null))
    expect(chunks[0]).toMatchObject({ model: "asked", choices: [{ delta: { role: "assistant" } }] })
    expect(chunks).toHaveLength(4)
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
  })

  test("a new event type is passed over", () => {
    const stream = translator()
    expect(feed(stream, { type: "message_mood", mood: 1 })).toBe("")
    expect(stream.progress).toBe(1)
  })

  test("each frame is one line of data, whatever the text holds", () => {
    const wild = 'a\nb\r\u2028\u2029"data: x"\n\n😀\ud800'
    const frames = feed(translator(), start, words(0, wild))
    expect(frames.split("\n")).toHaveLength(5)
    expect(story(frames)).toEqual([{ content: wild }])
  })
})
