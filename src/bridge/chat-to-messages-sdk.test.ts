import { afterAll, describe, expect, test } from "bun:test"
import fc from "fast-check"
import OpenAI from "openai"
import type { ChatCompletion } from "openai/resources/chat/completions"
import type { JsonObject } from "../core/json.ts"
import { utf8 } from "../lib/bytes.ts"
import { SseSplitter } from "../lib/sse.ts"
import { chatToMessages } from "./chat-to-messages.ts"

const asked: JsonObject = { model: "asked" }
const usage = { input_tokens: 10, cache_read_input_tokens: 4, cache_creation_input_tokens: 1, output_tokens: 9 }

const message = (content: readonly JsonObject[], stop_reason: string): JsonObject => ({
  id: "msg_01Ab",
  type: "message",
  role: "assistant",
  model: "claude-x",
  content,
  stop_reason,
  stop_sequence: null,
  usage,
})

/** How a message is cut up: where its texts are split, in which order overlapping calls go on, where the bytes are cut. */
interface Cut {
  readonly pieceLength: number
  readonly turns: readonly number[]
  readonly byteCuts: readonly number[]
}
const plainCut: Cut = { pieceLength: 3, turns: [], byteCuts: [] }

function pieces(text: string, length: number): readonly string[] {
  return Array.from({ length: Math.ceil(text.length / length) }, (_, i) => text.slice(i * length, (i + 1) * length))
}

/** The deltas of one block, and what it starts with. */
function unfold(block: JsonObject, length: number): { readonly opening: JsonObject; readonly deltas: JsonObject[] } {
  switch (block.type) {
    case "text":
      return {
        opening: { ...block, text: "" },
        deltas: pieces(String(block.text), length).map((text) => ({ type: "text_delta", text })),
      }
    case "thinking":
      return {
        opening: { ...block, thinking: "" },
        deltas: pieces(String(block.thinking), length).map((thinking) => ({ type: "thinking_delta", thinking })),
      }
    case "tool_use":
      return {
        opening: { ...block, input: {} },
        deltas: pieces(JSON.stringify(block.input), length).map((partial_json) => ({
          type: "input_json_delta",
          partial_json,
        })),
      }
    default:
      return { opening: block, deltas: [] }
  }
}

/** The vendor's stream of a message. Blocks follow each other; calls at its end may overlap as `turns` says. */
function eventsOf(whole: JsonObject, cut: Cut): string {
  const { content, stop_reason, ...rest } = whole
  const blocks = content as readonly JsonObject[]
  const started = { ...rest, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } }
  const events: JsonObject[] = [{ type: "message_start", message: started }, { type: "ping" }]
  const queues: JsonObject[][] = []
  for (const [index, block] of blocks.entries()) {
    const { opening, deltas } = unfold(block, cut.pieceLength)
    events.push({ type: "content_block_start", index, content_block: opening })
    const following = deltas.map((delta) => ({ type: "content_block_delta", index, delta }))
    const queue: JsonObject[] = [...following, { type: "content_block_stop", index }]
    if (cut.turns.length > 0 && block.type === "tool_use") queues.push(queue)
    else events.push(...queue)
  }
  for (const turn of cut.turns) events.push(...(queues[turn % Math.max(queues.length, 1)]?.splice(0, 1) ?? []))
  events.push(...queues.flat())
  events.push({ type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 9 } }, { type: "message_stop" })
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("")
}

/** What the caller receives for the vendor's bytes. */
function translated(events: string, cut: Cut, from = asked): string {
  const bytes = utf8(events)
  const stops = [...new Set(cut.byteCuts.map((at) => at % bytes.length)), 0, bytes.length].sort((a, b) => a - b)
  const stream = chatToMessages.stream(from)
  const splitter = new SseSplitter()
  let frames = ""
  for (const [i, end] of stops.slice(1).entries()) {
    for (const event of splitter.push(bytes.subarray(stops[i], end)).events) {
      frames += stream.read(event.event, event.data ?? "")
    }
  }
  expect(stream).toMatchObject({ ended: true, complete: true, error: null })
  return frames + stream.closing(null)
}

let served = { type: "", body: "" }
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () => new Response(served.body, { headers: { "content-type": served.type } }),
})
afterAll(() => server.stop(true))
const client = new OpenAI({ baseURL: `http://127.0.0.1:${server.port}/v1`, apiKey: "sk-test", maxRetries: 0 })
const ask = { model: "m", messages: [{ role: "user", content: "Hi" }] } satisfies OpenAI.ChatCompletionCreateParams

/** The package adds up the fields it knows; reasoning it only hands on, chunk by chunk. */
async function readStream(body: string): Promise<{ readonly final: ChatCompletion; readonly reasoning: string }> {
  served = { type: "text/event-stream", body }
  let reasoning = ""
  const stream = client.chat.completions.stream(ask).on("chunk", ({ choices }) => {
    const delta = choices[0]?.delta
    if (delta !== undefined && "reasoning_content" in delta) reasoning += delta.reasoning_content
  })
  return { final: await stream.finalChatCompletion(), reasoning }
}

const text = (words: string) => ({ type: "text", text: words })
const thinking = (thoughts: string) => ({ type: "thinking", thinking: thoughts, signature: "s" })
const call = (id: string, input: JsonObject) => ({ type: "tool_use", id, name: `tool_${id}`, input })

const examples: Readonly<Record<string, JsonObject>> = {
  text: message([text("Hello, world")], "end_turn"),
  "nothing at all": message([], "end_turn"),
  "thinking before text": message([thinking("Let me see"), text("Yes.")], "end_turn"),
  "one call": message([call("a", { city: "Paris" })], "tool_use"),
  "text and two calls": message([text("Wait."), call("a", { n: [1, 2] }), call("b", {})], "tool_use"),
  "a call reported as a plain end": message([call("a", {})], "end_turn"),
  "an answer that was cut": message([text("Once upon")], "max_tokens"),
  "a refusal": message([text("I can")], "refusal"),
  "the vendor's own tools": message(
    [
      { type: "server_tool_use", id: "s", name: "web_search", input: {} },
      { type: "redacted_thinking", data: "x" },
      text("ok"),
    ],
    "end_turn",
  ),
  "text that looks like events": message([text('a\n\ndata: {"x":1}\n\n\u2028😀')], "stop_sequence"),
}

describe("the openai package", () => {
  test.each(Object.entries(examples))("reads a whole answer: %s", async (_, whole) => {
    const answer = chatToMessages.answer(whole, asked)
    served = { type: "application/json", body: JSON.stringify(answer) }
    expect(await client.chat.completions.create(ask)).toEqual(answer as unknown as ChatCompletion)
  })

  test.each(Object.entries(examples))("makes of a stream what the whole answer says: %s", async (_, whole) => {
    const answer = chatToMessages.answer(whole, asked) as unknown as ChatCompletion
    const { final, reasoning } = await readStream(translated(eventsOf(whole, plainCut), plainCut))
    const [expected, got] = [answer.choices[0]!, final.choices[0]!]
    expect(got.finish_reason).toBe(expected.finish_reason)
    expect(got.message.content ?? "").toBe(expected.message.content ?? "")
    expect(reasoning).toBe("reasoning_content" in expected.message ? String(expected.message.reasoning_content) : "")
    expect(got.message.tool_calls ?? []).toMatchObject(expected.message.tool_calls ?? [])
    expect(final).toMatchObject({ id: answer.id, model: "claude-x", usage: answer.usage! })
  })

  test("reads the call of the older form", async () => {
    const whole = message([call("a", { x: 1 })], "tool_use")
    const { final } = await readStream(
      translated(eventsOf(whole, plainCut), plainCut, { functions: [{ name: "tool_a" }] }),
    )
    expect(final.choices[0]).toMatchObject({
      finish_reason: "function_call",
      message: { function_call: { name: "tool_a", arguments: '{"x":1}' } },
    })
  })

  test("throws what the upstream said in mid-stream", async () => {
    const stream = chatToMessages.stream(asked)
    const events = eventsOf(examples.text!, plainCut).split("\n\n").slice(0, 4)
    const frames = events.map((event) => stream.read(null, event.slice(event.indexOf("data: ") + 6)))
    frames.push(stream.read("error", '{"type":"error","error":{"type":"overloaded_error","message":"Too busy"}}'))
    const failure = await readStream(frames.join("")).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(OpenAI.APIError)
    expect(failure).toMatchObject({ message: expect.stringContaining("Too busy"), type: "overloaded_error" })
  })
})

/** The message that the chunks add up to, by the rules of chat completions alone. */
function addUp(frames: string): JsonObject {
  let [content, reasoning, finish] = ["", "", ""]
  const calls: { id: string; name: string; arguments: string }[] = []
  for (const frame of frames.split("\n\n")) {
    if (!frame.startsWith("data: {")) continue
    for (const { delta, finish_reason } of JSON.parse(frame.slice(6)).choices) {
      content += delta.content ?? ""
      reasoning += delta.reasoning_content ?? ""
      finish += finish_reason ?? ""
      for (const { index, id, function: called } of delta.tool_calls ?? []) {
        calls[index] ??= { id, name: called.name, arguments: "" }
        calls[index].arguments += called.arguments
      }
    }
  }
  return { content, reasoning, finish, calls }
}

const anyBlock = fc.oneof(
  fc.string({ unit: "grapheme", minLength: 1 }).map(text),
  fc.string({ unit: "binary", minLength: 1 }).map(thinking),
  fc
    .record({ id: fc.uuid(), input: fc.dictionary(fc.string(), fc.jsonValue()) })
    .map(({ id, input }) => call(id, input as JsonObject)),
  fc.constant<JsonObject>({ type: "redacted_thinking", data: "x" }),
)
const anyCut = fc.record({
  pieceLength: fc.integer({ min: 1, max: 9 }),
  turns: fc.array(fc.nat(), { maxLength: 30 }),
  byteCuts: fc.array(fc.nat(), { maxLength: 12 }),
})

test("however a message is cut up, its stream adds up to the whole answer", () => {
  fc.assert(
    fc.property(fc.array(anyBlock, { maxLength: 6 }), anyCut, (content, cut) => {
      const whole = message(content, "end_turn")
      const [choice] = chatToMessages.answer(whole, asked).choices as [{ message: JsonObject; finish_reason: string }]
      const calls = (choice.message.tool_calls ?? []) as { id: string; function: JsonObject }[]
      expect(addUp(translated(eventsOf(whole, cut), cut))).toEqual({
        content: choice.message.content ?? "",
        reasoning: choice.message.reasoning_content ?? "",
        finish: choice.finish_reason,
        calls: calls.map(({ id, function: called }) => ({ id, ...called })),
      })
    }),
    { numRuns: 200 },
  )
})

const eventNames = [
  "message_start",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "message_delta",
  "message_stop",
  "ping",
  "surprise",
]
const blockTypes = ["text", "thinking", "tool_use", "text_delta", "thinking_delta", "input_json_delta", 7]
const anyPart = fc.oneof(
  fc.jsonValue(),
  fc.record(
    {
      type: fc.constantFrom(...blockTypes),
      text: fc.jsonValue(),
      thinking: fc.jsonValue(),
      name: fc.jsonValue(),
      id: fc.jsonValue(),
      input: fc.jsonValue(),
      partial_json: fc.jsonValue(),
      stop_reason: fc.jsonValue(),
      usage: fc.jsonValue(),
    },
    { requiredKeys: [] },
  ),
)
const anyEvent = fc.record(
  {
    type: fc.constantFrom(...eventNames),
    index: fc.oneof(fc.nat(2), fc.jsonValue()),
    message: anyPart,
    content_block: anyPart,
    delta: anyPart,
    usage: fc.jsonValue(),
    error: fc.option(fc.jsonValue(), { freq: 20 }),
  },
  { requiredKeys: ["type"] },
)
const anyData = fc.oneof({ weight: 9, arbitrary: anyEvent.map((event) => JSON.stringify(event)) }, fc.string())

test("malformed events never throw, and what comes of them is well-formed", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.option(fc.constantFrom(...eventNames, "error")), anyData)), (events) => {
      const stream = chatToMessages.stream(asked)
      const frames = events.map(([event, data]) => stream.read(event, data)).join("") + stream.closing(null)
      expect(frames).toEndWith("\n\ndata: [DONE]\n\n")
      const blocks = frames.split("\n\n").filter((block) => block.startsWith("data: {"))
      const chunks = blocks.map((block) => JSON.parse(block.slice(6)))
      expect(new Set(chunks.filter(({ id }) => id !== undefined).map(({ id }) => id)).size).toBe(1)
      expect(chunks.filter(({ error }) => error !== undefined).length).toBe(stream.error === null ? 0 : 1)
    }),
    { numRuns: 300 },
  )
})
