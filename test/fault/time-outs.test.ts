import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { connect } from "node:net"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { eventually } from "../support/gateway.ts"
import {
  chatRequest,
  chunk,
  dataOf,
  expectError,
  expectInBandError,
  expectSuccess,
  finishChunk,
  portOf,
  roleChunk,
  scene,
} from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => simulator.stop())

/** Timers may fire a moment early by another clock. */
const early = 2
/** A time-out that fires this late on a busy machine still fired by its own limit and not by another. */
const late = 2000

/** Vendors may tell usage as they go; where they do, nothing has to be counted here, which takes a worker's start. */
const usage = { prompt_tokens: 3, completion_tokens: 4 }
const first = chunk({ content: "Once upon " }, null, { usage })
const second = chunk({ content: "a time" })

describe("before the first byte: HTTP 504", () => {
  const silences: Record<string, Behaviour> = {
    "no headers": { kind: "hang" },
    "half a body": {
      kind: "stream",
      body: '{"choices":',
      headers: { "content-type": "application/json" },
      end: "stall",
    },
    "an error status without its body": { kind: "stream", status: 500, body: '{"err', end: "stall" },
  }
  for (const [name, step] of Object.entries(silences)) {
    test.concurrent(`not streamed: request_timeout, asked once (${name})`, async () => {
      await using stage = await scene(simulator, ["a", "b"], { timeouts: { nonStream: 400 } })
      stage.vendor("a").behave(step)
      const answer = await stage.ask(false)
      expectError(answer, 504, "timeout_error", "request_timeout")
      expect(answer.story.endedAt).toBeGreaterThanOrEqual(400 - early)
      expect(answer.story.endedAt).toBeLessThan(400 + late)
      expect(stage.calls()).toEqual([1, 0])
      await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
    })
  }

  const noTokens: Record<string, Behaviour> = {
    "no headers": { kind: "hang" },
    "headers only": { kind: "stream", body: "", end: "stall" },
    "pings and comments": { kind: "stream", body: ": hi\n\n:\n\n", end: "stall", pingEveryMs: 40 },
    "the role and pings": { kind: "stream", body: roleChunk, end: "stall", pingEveryMs: 40 },
    "half a first event": { kind: "stream", body: first.slice(0, 40), end: "stall" },
    "an empty delta again and again": { kind: "stream", frames: Array(200).fill(chunk({ content: "" })), gapMs: 40 },
    "filter results without choices": {
      kind: "stream",
      body: 'data: {"id":"","choices":[],"prompt_filter_results":[]}\n\n',
      end: "stall",
    },
  }
  for (const [name, step] of Object.entries(noTokens)) {
    test.concurrent(`streamed: first_token_timeout (${name})`, async () => {
      await using stage = await scene(simulator, ["a"], { timeouts: { firstToken: 400 } })
      stage.vendor("a").behave(step)
      const answer = await stage.ask(true)
      expectError(answer, 504, "timeout_error", "first_token_timeout")
      expect(answer.story.endedAt).toBeGreaterThanOrEqual(400 - early)
      expect(answer.story.endedAt).toBeLessThan(400 + late)
      expect(stage.calls()).toEqual([1])
      await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
    })
  }

  test.concurrent("streamed: stream_total_timeout where the whole stream's limit comes first", async () => {
    await using stage = await scene(simulator, ["a", "b"], { timeouts: { firstToken: 30_000, total: 400 } })
    stage.vendor("a").behave({ kind: "hang" })
    expectError(await stage.ask(true), 504, "timeout_error", "stream_total_timeout")
    expect(stage.calls()).toEqual([1, 0])
  })
})

describe("after the first byte: one in-band event, and no [DONE]", () => {
  test.concurrent("silence is stream_silence_timeout, and nobody else is asked", async () => {
    await using stage = await scene(simulator, ["a", "b"], { timeouts: { silence: 400 } })
    stage.vendor("a").behave({ kind: "stream", frames: [roleChunk, first, second], end: "stall" })
    const answer = await stage.ask(true)
    expectInBandError(answer, roleChunk + first + second, "timeout_error", "stream_silence_timeout")
    expect(answer.story.endedAt).toBeGreaterThanOrEqual(400 - early)
    expect(answer.story).toMatchObject({ estimated: false, usage: { input: 3, output: 4 } })
    expect(stage.calls()).toEqual([1, 0])
    await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
  })

  test.concurrent("pings pass on and are no progress", async () => {
    await using stage = await scene(simulator, ["a"], { timeouts: { silence: 500 } })
    stage.vendor("a").behave({ kind: "stream", frames: [first], end: "stall", pingEveryMs: 50 })
    const answer = await stage.ask(true)
    const pings = /^(: ping\n\n)+/.exec(answer.text.slice(first.length))?.[0] ?? ""
    expect(pings).not.toBe("")
    expectInBandError(answer, first + pings, "timeout_error", "stream_silence_timeout")
    expect(answer.story.endedAt).toBeLessThan(500 + late)
  })

  test.concurrent("half an event is no progress and does not reach the client", async () => {
    await using stage = await scene(simulator, ["a"], { timeouts: { silence: 400 } })
    const frames = [first, second.slice(0, 30)]
    stage.vendor("a").behave({ kind: "stream", frames, gapMs: 10, end: "stall" })
    expectInBandError(await stage.ask(true), first, "timeout_error", "stream_silence_timeout")
  })

  test.concurrent("a slow drip is cut at the total and not before", async () => {
    await using stage = await scene(simulator, ["a", "b"], { timeouts: { silence: 1500, total: 2500 } })
    stage.vendor("a").behave({ kind: "stream", frames: Array(100).fill(first), gapMs: 150 })
    const answer = await stage.ask(true)
    const drops = dataOf(answer.text).length - 1
    expect(drops).toBeGreaterThan(2)
    expectInBandError(answer, first.repeat(drops), "timeout_error", "stream_total_timeout")
    expect(answer.story.endedAt).toBeGreaterThanOrEqual(2500 - early)
    expect(answer.story.endedAt).toBeLessThan(2500 + late)
    expect(stage.calls()).toEqual([1, 0])
    await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
  })

  test.concurrent("a stream that has finished is a success, though its upstream never closes it", async () => {
    await using stage = await scene(simulator, ["a"], { timeouts: { silence: 800 } })
    stage.vendor("a").behave({ kind: "stream", frames: [first, finishChunk], end: "stall" })
    const answer = await stage.ask(true)
    expect(answer.text.startsWith(first + finishChunk)).toBeTrue()
    expect(dataOf(answer.text).at(-1)).toBe("[DONE]")
    expect(answer.story).toMatchObject({ ending: "completed", error: null, usage: { input: 3, output: 4 } })
  })
})

describe("what is not late", () => {
  for (const stream of [true, false]) {
    test.concurrent(`just in time is one attempt, ${stream ? "streamed" : "not streamed"}`, async () => {
      const limit = 3000
      await using stage = await scene(simulator, ["a", "b"], { timeouts: { firstToken: limit, nonStream: limit } })
      stage.vendor("a").behave({ kind: "chat", firstTokenDelayMs: limit - 1200, gapMs: 0 })
      expectSuccess(await stage.ask(stream), stream)
      expect(stage.calls()).toEqual([1, 0])
    })
  }

  test.concurrent("a stream may take longer than the limit of calls that are not streamed", async () => {
    await using stage = await scene(simulator, ["a", "b"], { timeouts: { nonStream: 300, firstToken: 5000 } })
    stage.vendor("a").behave({ kind: "chat", text: "abcdefgh", chunks: 8, gapMs: 100 })
    expectSuccess(await stage.ask(true), true)
    expect(stage.calls()).toEqual([1, 0])
  })

  // Alone, because so many bytes hold up the timers of others.
  test("a client that stops reading is not upstream silence", async () => {
    await using stage = await scene(simulator, ["a"], { timeouts: { silence: 300 } })
    stage.vendor("a").behave({ kind: "big", megabytes: 48, stream: true })
    const socket = connect({ port: portOf(stage.gateway), host: "127.0.0.1" })
    let received = 0
    let tail = Buffer.alloc(0)
    socket.on("data", (bytes: Buffer) => {
      received += bytes.length
      tail = Buffer.concat([tail, bytes]).subarray(-200)
      if (received === bytes.length) {
        socket.pause()
        setTimeout(() => socket.resume(), 1500)
      }
    })
    const ended = new Promise((resolve) => socket.once("close", resolve))
    socket.write(chatRequest(stage.gateway, '{"model":"m","stream":true,"messages":[]}'))
    await eventually(() => stage.gateway.stories[0], 20_000)
    await eventually(() => tail.toString().includes("data: [DONE]"), 20_000)
    expect(stage.gateway.stories[0]).toMatchObject({ ending: "completed", error: null, estimated: false })
    expect(stage.gateway.stories[0]!.endedAt).toBeGreaterThan(1400)
    expect(received).toBeGreaterThan(48 * 1024 * 1024)
    socket.destroy()
    await ended
  })
})

describe("one deadline for all attempts", () => {
  test.concurrent("hanging routes end together at the total", async () => {
    await using stage = await scene(simulator, ["a", "b", "c", "d"], { timeouts: { firstToken: 1000, total: 2500 } })
    for (const name of ["a", "b", "c", "d"]) stage.vendor(name).behave({ kind: "hang" })
    const answer = await stage.ask(true)
    expectError(answer, 504, "timeout_error", "stream_total_timeout")
    expect(answer.attempts).toEqual(["a:first:timeout", "b:next:timeout", "c:next:deadline"])
    expect(answer.story.endedAt).toBeGreaterThanOrEqual(2500 - early)
    expect(answer.story.endedAt).toBeLessThan(2500 + late)
  })

  test.concurrent("the first-token limit counts anew for each route", async () => {
    await using stage = await scene(simulator, ["a", "b", "c"], { timeouts: { firstToken: 1500 } })
    stage.vendor("a").behave({ kind: "hang" })
    stage.vendor("b").behave({ kind: "hang" })
    const answer = await stage.ask(true)
    expectSuccess(answer, true)
    expect(answer.attempts).toEqual(["a:first:timeout", "b:next:timeout", "c:next:answered"])
  })

  test.concurrent("all routes silent is first_token_timeout after one ask each", async () => {
    await using stage = await scene(simulator, ["a", "b", "c"], { timeouts: { firstToken: 300 } })
    for (const name of ["a", "b", "c"]) stage.vendor(name).behave({ kind: "hang" })
    expectError(await stage.ask(true), 504, "timeout_error", "first_token_timeout")
    expect(stage.calls()).toEqual([1, 1, 1])
  })

  test.concurrent("not streamed, slow refusals use up the time of the routes after them", async () => {
    await using stage = await scene(simulator, ["a", "b", "c"], { timeouts: { nonStream: 3000 } })
    stage.vendor("a").behave({ kind: "status", status: 401, delayMs: 400 })
    stage.vendor("b").behave({ kind: "status", status: 429, delayMs: 400 })
    stage.vendor("c").behave({ kind: "hang" })
    const answer = await stage.ask(false)
    expectError(answer, 504, "timeout_error", "request_timeout")
    expect(stage.calls()).toEqual([1, 1, 1])
    expect(answer.story.endedAt).toBeGreaterThanOrEqual(3000 - early)
    expect(answer.story.endedAt).toBeLessThan(3000 + late)
  })

  test.concurrent("a wait that would outlast the deadline is not begun: the next route, else the answer that came", async () => {
    await using stage = await scene(simulator, ["a", "b"], { timeouts: { nonStream: 2500 } })
    stage.vendor("a").behave({ kind: "status", status: 429, body: "{}", headers: { "retry-after": "3" } })
    expect((await stage.ask(false)).attempts).toEqual(["a:first:status", "b:next:answered"])
    const alone = await stage.ask(false, { model: "solo" })
    expect([alone.status, alone.text, alone.headers.get("retry-after")]).toEqual([429, "{}", "3"])
    expect(stage.calls()).toEqual([2, 1])
  })
})

describe("an upstream's own limits beat the common ones", () => {
  const short = { nonStream: 300, firstToken: 300, silence: 300, total: 300 }

  test.concurrent("shorter first token", async () => {
    await using stage = await scene(simulator, ["a", "b"], { each: { a: { timeouts: { firstToken: 300 } } } })
    stage.vendor("a").behave({ kind: "hang" })
    expect((await stage.ask(true)).attempts).toEqual(["a:first:timeout", "b:next:answered"])
  })

  test.concurrent("longer first token", async () => {
    const timeouts = { ...short, total: 60_000 }
    await using stage = await scene(simulator, ["a", "b"], {
      timeouts,
      each: { a: { timeouts: { firstToken: 5000, silence: 5000 } } },
    })
    stage.vendor("a").behave({ kind: "chat", firstTokenDelayMs: 800 })
    expectSuccess(await stage.ask(true), true)
    expect(stage.calls()).toEqual([1, 0])
  })

  test.concurrent("shorter and longer limit of calls that are not streamed", async () => {
    await using stage = await scene(simulator, ["a"], { each: { a: { timeouts: { nonStream: 300 } } } })
    stage.vendor("a").behave({ kind: "hang" })
    expectError(await stage.ask(false), 504, "timeout_error", "request_timeout")
    await using patient = await scene(simulator, ["a"], {
      timeouts: short,
      each: { a: { timeouts: { nonStream: 5000 } } },
    })
    patient.vendor("a").behave({ kind: "chat", headDelayMs: 800 })
    expectSuccess(await patient.ask(false), false)
  })

  test.concurrent("silence and total", async () => {
    const frames = [first, second]
    await using silent = await scene(simulator, ["a"], { each: { a: { timeouts: { silence: 800 } } } })
    silent.vendor("a").behave({ kind: "stream", frames, end: "stall" })
    expectInBandError(await silent.ask(true), first + second, "timeout_error", "stream_silence_timeout")
    await using endless = await scene(simulator, ["a"], { each: { a: { timeouts: { total: 1500 } } } })
    endless.vendor("a").behave({ kind: "stream", frames, end: "stall" })
    expectInBandError(await endless.ask(true), first + second, "timeout_error", "stream_total_timeout")
    await using patient = await scene(simulator, ["a"], {
      timeouts: short,
      each: { a: { timeouts: { silence: 5000, total: 20_000, firstToken: 5000 } } },
    })
    patient.vendor("a").behave({ kind: "chat", text: "ab", chunks: 2, gapMs: 700 })
    expectSuccess(await patient.ask(true), true)
  })
})
