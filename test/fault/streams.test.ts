import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { rawClient } from "../../simulator/testing/raw-client.ts"
import { eventually } from "../support/gateway.ts"
import {
  type Answer,
  chatRequest,
  chunk,
  dataOf,
  done,
  expectInBandError,
  expectSuccess,
  finishChunk,
  portOf,
  roleChunk,
  scene,
  usageChunk,
} from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => simulator.stop())

/** An empty last frame: the cut comes a moment after the events, because a runtime drops what was not read before an error. */
const moment = ""
const gapMs = 60

/** Usage told early, so that most tests need no counting here, which takes a worker's start. */
const usage = { prompt_tokens: 3, completion_tokens: 4 }
const words = ["Once ", "upon ", "a ", "time"].map((content) => chunk({ content }, null, { usage }))

describe("a stream cut short", () => {
  const expectTruncated = (answer: Answer, before: string): void => {
    expectInBandError(answer, before, "api_error", "upstream_stream_truncated")
    expect(answer.story.usage).toMatchObject({ input: 3, output: 4 })
    expect(answer.attempts).toEqual(["a:first:answered"])
  }
  for (const end of ["clean", "fin", "rst"] as const) {
    test.concurrent(`after any number of events (${end}): an in-band error, no [DONE], no other vendor`, async () => {
      await using stage = await scene(simulator, ["a", "b"])
      for (let events = 1; events <= words.length; events++) {
        const frames = [roleChunk, ...words.slice(0, events)]
        stage.vendor("a").behave({ kind: "stream", frames: [...frames, moment], gapMs, end })
        expectTruncated(await stage.ask(true), frames.join(""))
      }
      expect(stage.calls()).toEqual([words.length, 0])
    })
  }

  for (const framing of ["close", "content-length"] as const) {
    test.concurrent(`with the body framed by ${framing}`, async () => {
      await using stage = await scene(simulator, ["a", "b"])
      stage.vendor("a").behave({ kind: "stream", frames: [...words, moment], framing, end: "fin", gapMs })
      expectTruncated(await stage.ask(true), words.join(""))
      expect(stage.calls()).toEqual([1, 0])
    })
  }

  test.concurrent("in mid-chunk of the transfer encoding: whole events still arrive", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nffff\r\n"
    for (const thenClose of ["fin", "rst"] as const) {
      // The last write is the start of one more event.
      const splitAt = [Buffer.byteLength(head + words[0]), Buffer.byteLength(head + words.join(""))]
      stage.vendor("a").behave({ kind: "raw", bytes: `${head}${words.join("")}data: {`, splitAt, gapMs, thenClose })
      expectTruncated(await stage.ask(true), words.join(""))
    }
    expect(stage.calls()).toEqual([2, 0])
  })

  for (const end of ["fin", "rst"] as const) {
    test.concurrent(`in the same moment as its last events (${end}): it is never taken for a success`, async () => {
      await using stage = await scene(simulator, ["a", "b"])
      const frames = [roleChunk, ...words]
      for (let round = 0; round < 4; round++) {
        stage.vendor("a").behave({ kind: "stream", frames, end })
        const answer = await stage.ask(true)
        if (answer.story.attempts.at(-1)!.upstream === "b") {
          expectSuccess(answer, true)
          expect(answer.text).not.toContain("chatcmpl-1")
        } else {
          const arrived = frames.slice(0, dataOf(answer.text).length - 1).join("")
          expectInBandError(answer, arrived, "api_error", "upstream_stream_truncated")
        }
      }
    })
  }

  test.concurrent("in mid-event: no half event reaches the client, wherever the cut is", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    const last = words[1]!
    // One vendor's circuit would open after five of them.
    const cuts = [1, 3, 7, Math.floor(last.length / 2)]
    for (const cut of cuts) {
      const frames = [words[0]!, last.slice(0, cut)]
      stage.vendor("a").behave({ kind: "stream", frames: [...frames, moment], gapMs, end: cut % 2 ? "rst" : "clean" })
      expectTruncated(await stage.ask(true), words[0]!)
    }
    expect(stage.calls()).toEqual([cuts.length, 0])
  })

  test.concurrent("one of two choices unfinished is cut short too", async () => {
    await using stage = await scene(simulator, ["a"])
    const choice = (index: number, finish: string | null): string =>
      `data: {"id":"chatcmpl-1","choices":[{"index":${index},"delta":{"content":"x"},"finish_reason":${JSON.stringify(finish)}}],"usage":${JSON.stringify(usage)}}\n\n`
    const frames = [choice(0, null), choice(1, null), choice(0, "stop")]
    stage.vendor("a").behave({ kind: "stream", frames })
    expectTruncated(await stage.ask(true, { n: 2 }), frames.join(""))
  })

  test.concurrent("what was produced is counted here and marked, where the upstream did not say", async () => {
    await using stage = await scene(simulator, ["a"])
    const frames = [chunk({ content: "hello " }), chunk({ content: "world" })]
    stage.vendor("a").behave({ kind: "stream", frames })
    const answer = await stage.ask(true)
    expectInBandError(answer, frames.join(""), "api_error", "upstream_stream_truncated")
    expect(answer.story).toMatchObject({ estimated: true, usage: { output: 2 } })
    expect(answer.story.usage!.input).toBeGreaterThan(0)
  })
})

describe("a stream that is complete", () => {
  for (const end of ["clean", "fin", "rst"] as const) {
    test.concurrent(`but lacks [DONE] is a success (${end})`, async () => {
      await using stage = await scene(simulator, ["a", "b"])
      const frames = [roleChunk, ...words, finishChunk]
      stage.vendor("a").behave({ kind: "stream", frames: [...frames, usageChunk, moment], gapMs, end })
      const answer = await stage.ask(true)
      expect(answer.text).toBe(frames.join("") + usageChunk + done)
      expect(answer.story).toMatchObject({ ending: "completed", error: null, usage: { input: 7, output: 5 } })
      expect(stage.calls()).toEqual([1, 0])
    })
  }

  test.concurrent("and lacks its usage chunk gets one with the usage told before", async () => {
    await using stage = await scene(simulator, ["a"])
    const frames = [roleChunk, ...words, finishChunk]
    stage.vendor("a").behave({ kind: "stream", frames })
    const answer = await stage.ask(true)
    expect(answer.text.startsWith(frames.join(""))).toBeTrue()
    const [chunkData, marker] = dataOf(answer.text.slice(frames.join("").length))
    expect(JSON.parse(chunkData!)).toMatchObject({ id: "chatcmpl-1", choices: [], usage })
    expect(marker).toBe("[DONE]")
  })
})

describe("an upstream's own error in mid-stream", () => {
  const error = 'data: {"error":{"message":"ran out","type":"server_error","code":null}}\n\n'
  for (const [name, after] of [
    ["then the end", ""],
    ["then [DONE]", done],
  ] as const) {
    test.concurrent(`is passed and nothing is added (${name})`, async () => {
      await using stage = await scene(simulator, ["a", "b"])
      stage.vendor("a").behave({ kind: "stream", frames: [...words, error + after], gapMs: 5 })
      const answer = await stage.ask(true)
      expect(answer.text).toBe(words.join("") + error)
      expect(answer.story).toMatchObject({ ending: "failed", error: "upstream_error" })
      expect(stage.calls()).toEqual([1, 0])
    })
  }
})

describe("before the first token", () => {
  const preambles: Record<string, string[]> = {
    "the role": [roleChunk],
    "comments and an empty delta": [": hello\n\n", chunk({ content: "" }), ": ping\n\n"],
    "half the first event": [words[0]!.slice(0, 50)],
  }
  for (const [name, preamble] of Object.entries(preambles)) {
    test.concurrent(`not even headers reach the client (${name}); then everything in order`, async () => {
      await using stage = await scene(simulator, ["a"])
      const rest = [words[0]!.slice(name.startsWith("half") ? 50 : 0), ...words.slice(1), finishChunk, usageChunk, done]
      const before = preamble.join("")
      const splitAt = [Buffer.byteLength(before), Buffer.byteLength(before + rest[0])]
      stage.vendor("a").behave({ kind: "stream", body: before + rest.join(""), splitAt, gapMs: 500 })
      const client = await rawClient(portOf(stage.gateway))
      client.send(chatRequest(stage.gateway, '{"model":"m","stream":true,"messages":[]}'))
      await eventually(() => (stage.vendor("a").calls[0]?.bytesSent ?? 0) > before.length)
      await Bun.sleep(250)
      expect(client.reads).toHaveLength(0)
      await client.until("0\r\n\r\n")
      expect(dechunked(Buffer.concat(client.reads))).toBe(before + rest.join(""))
      client.leave()
    })
  }

  const failures: Record<string, Behaviour> = {
    "an error": { kind: "stream", frames: [": from a\n\n", chunk({ role: "assistant" }), 'data: {"error":{}}\n\n'] },
    "a reset": { kind: "stream", frames: [": from a\n\n", roleChunk], gapMs: 10, end: "rst" },
    "the end": { kind: "stream", frames: [": from a\n\n", roleChunk] },
  }
  for (const [name, step] of Object.entries(failures)) {
    test.concurrent(`bytes of an upstream that was given up never show (${name})`, async () => {
      await using stage = await scene(simulator, ["a", "b"])
      stage.vendor("a").behave(step)
      stage.vendor("b").behave({ kind: "chat", id: "chatcmpl-of-b", text: "from b" })
      const answer = await stage.ask(true)
      expectSuccess(answer, true)
      expect(answer.text).not.toContain("from a")
      const ids = dataOf(answer.text).flatMap((data) => (data === "[DONE]" ? [] : [JSON.parse(data).id]))
      expect(new Set(ids)).toEqual(new Set(["chatcmpl-of-b"]))
      expect(ids.length).toBeGreaterThan(2)
    })
  }
})

/** The body of a chunked response. */
function dechunked(response: Buffer): string {
  const parts: Buffer[] = []
  for (let at = response.indexOf("\r\n\r\n") + 4; ; ) {
    const lineEnd = response.indexOf("\r\n", at)
    const size = Number.parseInt(response.toString("latin1", at, lineEnd), 16)
    if (size === 0) return Buffer.concat(parts).toString()
    parts.push(response.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
}
