import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { eventually } from "../support/gateway.ts"
import { checkBeginning, messagesEvents } from "../support/messages-check.ts"
import { askMessages, expectMessagesError, over, type Way, ways } from "../support/messages-scene.ts"
import { type Answer, chunk, roleChunk, stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

type Fault = "clean" | "fin" | "rst" | "stall"

/** A stream that says a word, and then goes no further; the word must have been read before a reset throws it away. */
function cutShort(way: Way, how: Fault, pingEveryMs?: number): Behaviour {
  const pings = pingEveryMs === undefined ? {} : { pingEveryMs }
  // After message_start, the block's start and a ping, or after the role: two words.
  if (way === "native")
    return { kind: "messages", text: "one two three", gapMs: 100, cut: { afterEvents: 5, how }, ...pings }
  return { kind: "chat", text: "one two three", gapMs: 100, cut: { afterEvents: 3, how }, ...pings }
}

/** Ours, in band, in the messages style: the last event, and no success marker. */
function expectInBand(answer: Answer, type: string, code: string): void {
  const id = answer.headers.get("x-request-id")
  expect(answer.status).toBe(200)
  expect(answer.text).toContain("one")
  const events = messagesEvents(answer.text)
  expect(events.at(-1)).toEqual({
    type: "error",
    error: { type, code, message: expect.any(String), request_id: id },
    request_id: id,
  } as never)
  expect(events.filter((event) => event.type === "error")).toHaveLength(1)
  expect(answer.text).not.toContain("message_stop")
  expect(answer.text).not.toContain("message_delta")
  expect(answer.story).toMatchObject({ ending: "failed", error: code, estimated: true })
  expect(answer.story.usage!.output).toBeGreaterThan(0)
}

describe.each(ways)("%s", (way) => {
  test.concurrent.each(["clean", "fin", "rst"] as const)(
    "vector 80: a stream that ends by %s after two words is truncated, told in band",
    async (how) => {
      await using stage = await over(way, simulator)
      stage.vendor("a").behave(cutShort(way, how))
      const answer = await askMessages(stage, { stream: true })
      expectInBand(answer, "api_error", "upstream_stream_truncated")
      if (way === "bridged") checkBeginning(answer.text)
      expect(stage.calls()).toEqual([1])
    },
  )

  test.concurrent("silence, though pings come", async () => {
    await using stage = await over(way, simulator, { timeouts: { silence: 400 } })
    stage.vendor("a").behave(cutShort(way, "stall", 50))
    expectInBand(await askMessages(stage, { stream: true }), "timeout_error", "stream_silence_timeout")
    await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
  })

  test.concurrent("the end of a stream's time", async () => {
    await using stage = await over(way, simulator, { timeouts: { total: 700 } })
    stage.vendor("a").behave(cutShort(way, "stall"))
    expectInBand(await askMessages(stage, { stream: true }), "timeout_error", "stream_total_timeout")
  })

  test.concurrent("no first token in time: 504", async () => {
    await using stage = await over(way, simulator, { timeouts: { firstToken: 400 } })
    const cut = { afterEvents: 1, how: "stall" } as const
    stage.vendor("a").behave(way === "native" ? { kind: "messages", gapMs: 1, cut } : { kind: "chat", gapMs: 1, cut })
    expectMessagesError(await askMessages(stage, { stream: true }), 504, "timeout_error", "first_token_timeout")
  })

  test.concurrent("not streamed: 504 request_timeout", async () => {
    await using stage = await over(way, simulator, { timeouts: { nonStream: 400 } })
    stage.vendor("a").behave({ kind: "hang" })
    expectMessagesError(await askMessages(stage), 504, "timeout_error", "request_timeout")
    await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
  })

  test.concurrent("nobody there, a web page, half an answer: 502 in the messages style", async () => {
    await using stage = await over(way, simulator)
    const page = { kind: "html", status: 502 } as const
    for (const [step, code] of [
      [{ kind: "reset" }, "upstream_unreachable"],
      [page, "upstream_error"],
      [{ kind: "html", status: 200 }, "upstream_invalid_response"],
      [{ kind: "status", status: 200, json: { id: "x", error: { message: "no" } } }, "upstream_invalid_response"],
    ] as const) {
      stage.vendor("a").behave(step)
      const answer = await askMessages(stage)
      expectMessagesError(answer, 502, "api_error", code)
      expect(answer.text).not.toContain("<")
      expect(answer.story).toMatchObject({ ending: "failed", charge: 0n })
    }
  })
})

describe("an error event in mid-stream", () => {
  test("native: passes as it is, and nothing is added", async () => {
    await using stage = await over("native", simulator)
    stage.vendor("a").behave({ kind: "messages", text: "one two", gapMs: 100, ending: "error", endAfterEvents: 5 })
    const answer = await askMessages(stage, { stream: true })
    expect(messagesEvents(answer.text).at(-1)).toEqual({
      type: "error",
      error: { type: "overloaded_error", message: "Overloaded" },
    } as never)
    expect(answer.text).not.toContain("message_stop")
    expect(answer.story).toMatchObject({ ending: "failed", error: "upstream_error" })
  })

  test.each([
    [{ code: "overloaded", message: "busy" }, "overloaded_error"],
    [{ type: "server_error", message: "busy" }, "api_error"],
    [{ code: 429, message: "busy" }, "rate_limit_error"],
    [{ code: "context_length_exceeded", message: "busy" }, "invalid_request_error"],
  ])("vector 81, bridged: %j is told as %s, the stream ends there", async (error, type) => {
    await using stage = await over("bridged", simulator)
    const frames = [
      roleChunk,
      chunk({ content: "one" }),
      `data: ${JSON.stringify({ error })}\n\n`,
      chunk({ content: "two" }),
    ]
    stage.vendor("a").behave({ kind: "stream", frames, gapMs: 100 })
    const answer = await askMessages(stage, { stream: true })
    const events = checkBeginning(answer.text)
    expect(events.at(-1)).toMatchObject({ type: "error", error: { type, message: expect.stringContaining("busy") } })
    expect(answer.text).not.toContain("two")
    expect(answer.text).not.toContain("message_stop")
    expect(answer.story).toMatchObject({ ending: "failed", error: "upstream_error" })
  })
})

test.each(ways)("%s: an upstream that has finished and keeps the line open has finished", async (way) => {
  await using stage = await over(way, simulator, { timeouts: { silence: 400 } })
  // All but the end marker, and of chat the usage too.
  const events = way === "native" ? 6 : 3
  const cut = { afterEvents: events, how: "stall" } as const
  stage.vendor("a").behave({ kind: way === "native" ? "messages" : "chat", text: "one", gapMs: 1, cut })
  const answer = await askMessages(stage, { stream: true })
  expect(messagesEvents(answer.text).at(-1)).toEqual({ type: "message_stop" })
  expect(answer.story).toMatchObject({ ending: "completed", error: null, estimated: way === "bridged" })
})

test.each([
  ["no choices", { choices: [] }],
  ["a choice without a message", { choices: [{ index: 0 }] }],
  ["no completion at all", { id: "x" }],
])("vector 56: a chat answer with %s is 502", async (_, json) => {
  await using stage = await over("bridged", simulator)
  stage.vendor("a").behave({ kind: "status", status: 200, json })
  expectMessagesError(await askMessages(stage), 502, "api_error", "upstream_invalid_response")
})

test("native: message_delta without message_stop is complete, and the marker is added", async () => {
  await using stage = await over("native", simulator)
  stage.vendor("a").behave({ kind: "messages", text: "one", ending: "none", gapMs: 1 })
  const answer = await askMessages(stage, { stream: true })
  expect(
    messagesEvents(answer.text)
      .slice(-2)
      .map(({ type }) => type),
  ).toEqual(["message_delta", "message_stop"])
  expect(answer.story).toMatchObject({ ending: "completed", estimated: false })
})
