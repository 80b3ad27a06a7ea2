import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { readSaid, together } from "../support/chat-said.ts"
import { eventually, headerOf } from "../support/gateway.ts"
import {
  type Answer,
  asked,
  chunk,
  dataOf,
  expectError,
  expectSuccess,
  scene,
  stopWithoutComplaint,
} from "../support/scene.ts"
import { chunksOf, usageChunksOf } from "../support/sse-events.ts"
import { anthropic, chatUsage, messagesUsage, modes, overMessages, used } from "./over-messages.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

describe.each(modes)("failover, %s", (_, stream) => {
  test("a prompt that is too long goes to the next route", async () => {
    await using stage = await scene(simulator, ["a", "b"], { each: { a: anthropic } })
    const error = { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" }
    stage.vendor("a").behave({ kind: "status", status: 400, json: { type: "error", error } })
    expectSuccess(await stage.ask(stream), stream)
    expect(stage.calls()).toEqual([1, 1])
    const alone = await stage.ask(stream, { model: "solo" })
    expect([alone.status, JSON.parse(alone.text).error.code]).toEqual([400, "context_length_exceeded"])
  })

  const troubles: Record<string, Behaviour> = {
    "529 overloaded": { kind: "status", status: 529 },
    "500": { kind: "status", status: 500 },
    reset: { kind: "reset" },
    "a web page": { kind: "html", status: 200 },
    ...(stream
      ? {
          "an overloaded event first": { kind: "messages", ending: "error", endAfterEvents: 0 },
          "an overloaded event after message_start and a ping": {
            kind: "messages",
            ending: "error",
            endAfterEvents: 3,
            gapMs: 1,
          },
          "a stream that ends after message_start": {
            kind: "messages",
            gapMs: 1,
            cut: { afterEvents: 1, how: "clean" },
          },
        }
      : {
          "an error under 200": {
            kind: "status",
            status: 200,
            json: { type: "error", error: { type: "overloaded_error" } },
          },
          "JSON that is no message": { kind: "status", status: 200, json: { id: "x" } },
          "half a body": { kind: "messages", cut: { afterEvents: 0, how: "fin" } },
        }),
  }
  test.concurrent.each(Object.keys(troubles))("%s: once more, then a chat upstream takes over", async (about) => {
    await using stage = await scene(simulator, ["a", "b"], { each: { a: anthropic } })
    stage.vendor("a").behave(troubles[about]!)
    stage.vendor("b").behave({ kind: "chat", text: "from b", gapMs: 1 })
    const answer = await stage.ask(stream)
    expectSuccess(answer, stream)
    expect(answer.text).toContain("from")
    expect(stage.calls()).toEqual([2, 1])
    expect(asked(stage, "b").messages).toEqual([{ role: "user", content: "Say hello" }])
  })

  test("from a chat upstream to a messages upstream, and back to a third inside one request", async () => {
    const each = { b: anthropic }
    await using stage = await scene(simulator, ["a", "b", "c"], { each })
    stage.vendor("a").behave({ kind: "status", status: 401 })
    stage.vendor("b").behave({ kind: "status", status: 403 })
    stage.vendor("c").behave({ kind: "chat", text: "from c", gapMs: 1 })
    const answer = await stage.ask(stream, { temperature: 0.5 })
    expectSuccess(answer, stream)
    expect(answer.attempts).toEqual(["a:first:status", "b:next:status", "c:next:answered"])
    expect(stage.calls()).toEqual([1, 1, 1])
    expect(asked(stage, "b")).toHaveProperty("max_tokens", 4096)
    for (const name of ["a", "c"]) {
      const { stream_options: _, ...rest } = asked(stage, name)
      expect(rest).toEqual({
        model: "m-upstream",
        ...(stream ? { stream: true } : {}),
        messages: [{ role: "user", content: "Say hello" }],
        temperature: 0.5,
      })
    }
    const [a, b, c] = ["a", "b", "c"].map((name) => stage.vendor(name).calls[0]!)
    expect([headerOf(a!, "authorization"), headerOf(b!, "x-api-key"), headerOf(c!, "authorization")]).toEqual([
      "Bearer credential-of-a",
      "credential-of-b",
      "Bearer credential-of-c",
    ])
    expect([headerOf(a!, "x-api-key"), headerOf(b!, "authorization"), headerOf(c!, "x-api-key")]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    stage.vendor("b").behave({ kind: "messages", text: "from b", gapMs: 1 })
    expect(readSaid(await stage.ask(stream), stream).content).toBe("from b")
  })

  test("what a messages upstream cannot be told goes to the chat upstream behind it", async () => {
    await using stage = await scene(simulator, ["a", "b"], { each: { a: anthropic } })
    const answer = await stage.ask(stream, { n: 2 })
    expect(answer.status).toBe(200)
    expect(answer.attempts).toEqual(["a:first:not_bridgeable", "b:next:answered"])
    expect(asked(stage, "b").n).toBe(2)
  })
})

describe("a stream in trouble", () => {
  /** Ours is the last event, nothing of a half one before it, and no [DONE]. */
  function expectInBand(answer: Answer, type: string, code: string): void {
    const id = answer.headers.get("x-request-id")
    const events = dataOf(answer.text)
    expect(JSON.parse(events.at(-1)!)).toEqual({
      error: { type, code, message: expect.any(String), request_id: id },
      request_id: id,
    })
    expect(together(chunksOf(answer.text).slice(0, -1))).toMatchObject({ content: "one ", finish: [] })
    expect(answer.text).not.toContain("[DONE]")
    expect(usageChunksOf(answer.text)).toEqual([])
    expect(answer.story).toMatchObject({ ending: "failed", error: code })
  }

  const event = (type: string, fields: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
  const opening =
    event("message_start", { message: { id: "msg_1", role: "assistant", model: "up", content: [] } }) +
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } })
  const word = event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "one " } })
  // message_start, content_block_start, ping, the first word.
  const begun = 4

  for (const how of ["clean", "fin", "rst"] as const) {
    test.concurrent(`cut by ${how}: upstream_stream_truncated in band, nobody else is asked`, async () => {
      await using stage = await scene(simulator, ["a", "b"], { each: { a: anthropic } })
      // Half an event comes last, a while after the first word: both must not be read at once.
      const frames = [opening + word, word.slice(0, 40)]
      stage.vendor("a").behave({ kind: "stream", frames, gapMs: 300, end: how })
      const answer = await stage.ask(true)
      expectInBand(answer, "api_error", "upstream_stream_truncated")
      expect(answer.story.estimated).toBeTrue()
      expect(stage.calls()).toEqual([1, 0])
    })
  }

  test.concurrent("an error event in mid-stream is told in chat style and nothing is added", async () => {
    await using stage = await scene(simulator, ["a", "b"], { each: { a: anthropic } })
    stage.vendor("a").behave({ kind: "messages", text: "one two", gapMs: 300, ending: "error", endAfterEvents: begun })
    const answer = await stage.ask(true)
    expect(JSON.parse(dataOf(answer.text).at(-1)!)).toEqual({
      error: { message: "Overloaded", type: "overloaded_error", param: null, code: null },
    })
    expect(answer.text).not.toContain("[DONE]")
    expect(answer.story).toMatchObject({ ending: "failed", error: "upstream_error" })
    expect(stage.calls()).toEqual([1, 0])
  })

  test.concurrent("silence, though pings come", async () => {
    await using stage = await overMessages(simulator, { timeouts: { silence: 400 } })
    const cut = { afterEvents: begun, how: "stall" } as const
    stage.vendor("a").behave({ kind: "messages", text: "one two", gapMs: 5, cut, pingEveryMs: 50 })
    const answer = await stage.ask(true)
    expectInBand(answer, "timeout_error", "stream_silence_timeout")
    // Pings pass on as comments, which chat clients skip.
    expect(answer.text).toContain(": ping\n\n")
    expect(answer.text).not.toContain("event: ping")
    await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
  })

  test.concurrent("the end of a stream's time", async () => {
    await using stage = await overMessages(simulator, { timeouts: { total: 700 } })
    stage.vendor("a").behave({ kind: "messages", text: "one two", gapMs: 5, cut: { afterEvents: begun, how: "stall" } })
    expectInBand(await stage.ask(true), "timeout_error", "stream_total_timeout")
  })

  test.concurrent("no first token in time: 504, or the next route", async () => {
    await using stage = await scene(simulator, ["a", "b"], { each: { a: anthropic }, timeouts: { firstToken: 1000 } })
    const cut = { afterEvents: 3, how: "stall" } as const
    stage.vendor("a").behave({ kind: "messages", gapMs: 5, cut, pingEveryMs: 50 })
    expectError(await stage.ask(true, { model: "solo" }), 504, "timeout_error", "first_token_timeout")
    const answer = await stage.ask(true)
    expectSuccess(answer, true)
    expect(answer.attempts).toEqual(["a:first:timeout", "b:next:answered"])
  })

  test.concurrent("not streamed: 504 request_timeout", async () => {
    await using stage = await overMessages(simulator, { timeouts: { nonStream: 400 } })
    stage.vendor("a").behave({ kind: "hang" })
    expectError(await stage.ask(false), 504, "timeout_error", "request_timeout")
    await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
  })

  test.concurrent("message_delta without message_stop is complete", async () => {
    await using stage = await overMessages(simulator)
    stage.vendor("a").behave({ kind: "messages", text: "one", usage: messagesUsage, ending: "none", gapMs: 5 })
    const answer = await stage.ask(true)
    expect(readSaid(answer, true)).toMatchObject({ content: "one", finish: ["stop"], usage: chatUsage })
    expect(answer.story).toMatchObject({ ending: "completed", usage: used, estimated: false })
  })

  test.concurrent("without usage it is counted, told once and marked", async () => {
    await using stage = await overMessages(simulator)
    stage.vendor("a").behave({ kind: "messages", text: "one two three", usage: "none", gapMs: 1 })
    const answer = await stage.ask(true)
    const { usage } = readSaid(answer, true) as { usage: { completion_tokens: number } }
    expect(answer.story.estimated).toBeTrue()
    expect(usage.completion_tokens).toBe(answer.story.usage!.output)
    expect(usage.completion_tokens).toBeGreaterThan(0)
  })

  test.concurrent("JSON though a stream was asked for passes as JSON", async () => {
    await using stage = await overMessages(simulator)
    stage.vendor("a").behave({ kind: "messages", text: "whole", ignoresStream: true, usage: messagesUsage })
    const answer = await stage.ask(true)
    expect(answer.headers.get("content-type")).toStartWith("application/json")
    expect(readSaid(answer, false)).toMatchObject({ content: "whole", usage: chatUsage })
  })

  test.concurrent("a client that leaves: the vendor is let go and what was produced is counted", async () => {
    await using stage = await overMessages(simulator)
    stage.vendor("a").behave({ kind: "messages", text: "one two", gapMs: 5, cut: { afterEvents: begun, how: "stall" } })
    const leaving = new AbortController()
    const response = await stage.gateway.chat(
      { model: "m", stream: true, messages: [{ role: "user", content: "x" }] },
      { signal: leaving.signal },
    )
    await response.body!.getReader().read()
    leaving.abort()
    await eventually(() => stage.vendor("a").calls[0]!.closedByPeer, 2500)
    const story = await eventually(() => stage.gateway.stories[0])
    expect(story).toMatchObject({ ending: "client_gone", estimated: true })
    expect(story.usage!.output).toBeGreaterThan(0)
  })

  test.concurrent("a chat upstream's stream right after it is byte for byte its own", async () => {
    await using stage = await scene(simulator, ["a", "b"], { each: { a: anthropic } })
    const own = chunk({ content: "x" }) + chunk({}, "stop", { usage: { prompt_tokens: 1, completion_tokens: 1 } })
    stage.vendor("a").behave({ kind: "messages", ending: "error", endAfterEvents: 2, gapMs: 1 })
    stage.vendor("b").behave({ kind: "stream", body: own })
    const answer = await stage.ask(true)
    expect(answer.text).toStartWith(own)
    expect(usageChunksOf(answer.text)).toHaveLength(1)
    expect(answer.text).not.toContain("message_start")
  })
})
