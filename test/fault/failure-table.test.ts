import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { expectError, expectSuccess, roleChunk, type Scene, scene } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
const gone = await startSimulator()
await gone.stop()
/** A plain port that answers a TLS greeting as web servers do. */
const plainPort = Bun.listen({
  hostname: "127.0.0.1",
  port: 0,
  socket: { data: (socket) => void socket.end("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n") },
})
afterAll(async () => {
  plainPort.stop(true)
  await simulator.stop()
})

const modes = [
  ["not streamed", false],
  ["streamed", true],
] as const
const answer = { id: "x", object: "chat.completion", choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } }
const answerText = JSON.stringify(answer)
const json = { "content-type": "application/json" }
const streamError = 'data: {"error":{"message":"overloaded","type":"server_error"}}\n\n'

function expectShortPause(pause: number): void {
  expect(pause).toBeGreaterThanOrEqual(249)
  expect(pause).toBeLessThan(3000)
}

/** The route fails twice and the next one answers; it fails once and answers; it fails twice and is the only one. */
async function expectSameOnceThenNext(stage: Scene, step: Behaviour, stream: boolean, code: string): Promise<void> {
  const [a, b] = [stage.vendor("a"), stage.vendor("b")]
  a.behave(step)
  const next = await stage.ask(stream)
  expectSuccess(next, stream)
  expect(next.attempts.map((attempt) => attempt.replace(/:[a-z_]+$/, ""))).toEqual(["a:first", "a:repeat", "b:next"])
  expect(stage.calls()).toEqual([2, 1])
  expectShortPause(next.pauseAfter(0))
  expect(next.pauseAfter(1)).toBeLessThan(250)

  a.reset()
  b.reset()
  a.behave(step, { kind: "chat" })
  expectSuccess(await stage.ask(stream), stream)
  expect(stage.calls()).toEqual([2, 0])

  a.reset()
  a.behave(step)
  expectError(await stage.ask(stream, { model: "solo" }), 502, "api_error", code)
  expect(stage.calls()).toEqual([2, 0])
}

describe("once more on the same route after a short pause, then the next", () => {
  const steps: Record<string, [step: Behaviour, code: string, only?: "streamed" | "not streamed"]> = {
    "reset before headers": [{ kind: "reset" }, "upstream_unreachable"],
    "FIN before headers": [{ kind: "close" }, "upstream_unreachable"],
    "garbage instead of HTTP": [{ kind: "garbage" }, "upstream_unreachable"],
    "a web page under 200": [{ kind: "html", status: 200 }, "upstream_invalid_response"],
    "200 that is not JSON": [{ kind: "status", status: 200, body: "I am fine" }, "upstream_invalid_response"],
    "200 with an empty body": [{ kind: "status", status: 200, body: "" }, "upstream_invalid_response"],
    "200 whose JSON is cut": [
      { kind: "status", status: 200, body: answerText.slice(0, -1) },
      "upstream_invalid_response",
    ],
    "200 with a JSON array": [{ kind: "status", status: 200, body: "[]" }, "upstream_invalid_response"],
    "a JSON error under 200": [
      { kind: "status", status: 200, body: '{"error":{"message":"overloaded"}}' },
      "upstream_invalid_response",
    ],
    "a body that ends before its content-length": [
      { kind: "stream", body: answerText, headers: json, framing: "content-length", end: "fin" },
      "upstream_invalid_response",
      "not streamed",
    ],
    "a chunked body without its last chunk": [
      { kind: "stream", body: answerText, headers: json, end: "fin" },
      "upstream_invalid_response",
      "not streamed",
    ],
    "a body cut by a reset": [
      { kind: "stream", body: answerText, headers: json, end: "rst" },
      "upstream_invalid_response",
      "not streamed",
    ],
    "a body that is not the gzip it says": [
      { kind: "status", status: 200, body: answerText, headers: { "content-encoding": "gzip" } },
      "upstream_invalid_response",
      "not streamed",
    ],
    "a stream of nothing": [{ kind: "stream", body: "" }, "upstream_error", "streamed"],
    "a stream of comments only": [{ kind: "stream", body: ": hello\n\n: ping\n\n" }, "upstream_error", "streamed"],
    "a stream of [DONE] only": [{ kind: "stream", body: "data: [DONE]\n\n" }, "upstream_error", "streamed"],
    "a stream that ends after the role": [{ kind: "stream", body: roleChunk }, "upstream_error", "streamed"],
    "a stream reset after the role": [{ kind: "stream", body: roleChunk, end: "rst" }, "upstream_error", "streamed"],
    "a stream cut after the role": [{ kind: "stream", body: roleChunk, end: "fin" }, "upstream_error", "streamed"],
    "a stream that begins with an error": [{ kind: "stream", body: streamError }, "upstream_error", "streamed"],
    "a stream that begins with a named error event": [
      { kind: "stream", body: 'event: error\ndata: {"type":"overloaded_error"}\n\n' },
      "upstream_error",
      "streamed",
    ],
    "an error right after the role": [
      { kind: "stream", frames: [roleChunk, streamError], gapMs: 20 },
      "upstream_error",
      "streamed",
    ],
  }
  for (const status of [500, 501, 502, 503, 504, 520, 529, 599])
    steps[`status ${status}`] = [{ kind: "status", status }, "upstream_error"]

  for (const [name, [step, code, only]] of Object.entries(steps)) {
    for (const [mode, stream] of modes) {
      if (only !== undefined && only !== mode) continue
      test.concurrent(`${name}, ${mode}`, async () => {
        await using stage = await scene(simulator, ["a", "b"])
        await expectSameOnceThenNext(stage, step, stream, code)
      })
    }
  }

  const addresses = {
    "connection refused": `${gone.url}/a/v1`,
    "a name that does not exist": "http://no-such-host.invalid/v1",
    "TLS to a plain port": `https://127.0.0.1:${plainPort.port}/v1`,
  }
  for (const [name, baseUrl] of Object.entries(addresses)) {
    for (const [mode, stream] of modes) {
      test.concurrent(`${name}, ${mode}`, async () => {
        await using stage = await scene(simulator, ["a", "b"], { each: { a: { baseUrl } } })
        const next = await stage.ask(stream)
        expectSuccess(next, stream)
        expect(next.attempts).toEqual(["a:first:unreachable", "a:repeat:unreachable", "b:next:answered"])
        expectShortPause(next.pauseAfter(0))
        expect(stage.vendor("b").calls).toHaveLength(1)
        const alone = await stage.ask(stream, { model: "solo" })
        expectError(alone, 502, "api_error", "upstream_unreachable")
        expect(alone.attempts).toHaveLength(2)
      })
    }
  }
})

describe("the next route at once", () => {
  const nextOnly = [401, 402, 403, 404, 408, 425, 429]
  for (const [mode, stream] of modes) {
    test.concurrent(`${nextOnly.join(", ")}: never the same route again, ${mode}`, async () => {
      await using stage = await scene(simulator, ["a", "b"])
      for (const status of nextOnly) {
        stage.vendor("a").reset()
        stage.vendor("b").reset()
        stage.vendor("a").behave({ kind: "status", status })
        const answered = await stage.ask(stream)
        expectSuccess(answered, stream)
        expect(answered.attempts).toEqual(["a:first:status", "b:next:answered"])
        expect(answered.pauseAfter(0)).toBeLessThan(250)
        expect(stage.calls()).toEqual([1, 1])
      }
    })

    test.concurrent(`a context that is too long for one model may fit into the next, ${mode}`, async () => {
      await using stage = await scene(simulator, ["a", "b"])
      const body = '{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}'
      stage.vendor("a").behave({ kind: "status", status: 400, body })
      const answered = await stage.ask(stream)
      expectSuccess(answered, stream)
      expect(stage.calls()).toEqual([1, 1])
      const last = await stage.ask(stream, { model: "solo" })
      expect([last.status, last.text]).toEqual([400, body])
    })

    test.concurrent(`redirects are not followed, ${mode}`, async () => {
      await using stage = await scene(simulator, ["a", "b"])
      const elsewhere = simulator.vendor(`elsewhere-${mode.replace(" ", "-")}`)
      for (const status of [301, 302, 303, 307, 308]) {
        stage.vendor("a").reset()
        stage.vendor("b").reset()
        const location = `${elsewhere.baseUrl}/chat/completions`
        stage.vendor("a").behave({ kind: "status", status, headers: { location } }, { kind: "chat" })
        expectSuccess(await stage.ask(stream), stream)
        expect(stage.calls()).toEqual([1, 1])
        // Health must not end the series.
        await stage.ask(stream, { model: "solo" })
      }
      stage.vendor("a").behave({ kind: "status", status: 302, headers: { location: elsewhere.baseUrl } })
      const alone = await stage.ask(stream, { model: "solo" })
      expectError(alone, 502, "api_error", "upstream_invalid_response")
      expect(alone.attempts).toEqual(["a:first:redirect"])
      expect(elsewhere.calls).toHaveLength(0)
    })
  }

  const silences: Record<string, Behaviour> = {
    "no headers": { kind: "hang" },
    "headers and nothing else": { kind: "stream", body: "", end: "stall" },
    "pings only": { kind: "stream", body: ": hello\n\n", end: "stall", pingEveryMs: 30 },
    "the role and pings": { kind: "stream", body: roleChunk, end: "stall", pingEveryMs: 30 },
  }
  for (const [name, step] of Object.entries(silences)) {
    test.concurrent(`no first token in time (${name}): a silent route is asked once`, async () => {
      await using stage = await scene(simulator, ["a", "b"], { each: { a: { timeouts: { firstToken: 300 } } } })
      stage.vendor("a").behave(step)
      const answered = await stage.ask(true)
      expectSuccess(answered, true)
      expect(answered.attempts).toEqual(["a:first:timeout", "b:next:answered"])
      expect(answered.pauseAfter(0)).toBeLessThan(250)
      expect(stage.calls()).toEqual([1, 1])
      expectError(await stage.ask(true, { model: "solo" }), 504, "timeout_error", "first_token_timeout")
      expect(stage.calls()).toEqual([2, 1])
    })
  }
})

describe("a short retry-after", () => {
  const twins = [
    { upstream: "a", priority: 1, weight: 1_000_000 },
    { upstream: "b", priority: 1, weight: 1 },
    { upstream: "c", priority: 2 },
  ]
  const limited = (status: number, after: string): Behaviour => ({
    kind: "status",
    status,
    headers: { "retry-after": after },
  })
  const inSeconds = (seconds: number): string => new Date(Date.now() + seconds * 1000).toUTCString()

  for (const status of [429, 503]) {
    for (const [mode, stream] of modes) {
      test.concurrent(`${status}: a free route of the same priority at once, ${mode}`, async () => {
        await using stage = await scene(simulator, ["a", "b", "c"], { routes: twins })
        stage.vendor("a").behave(limited(status, "3"))
        const answered = await stage.ask(stream)
        expectSuccess(answered, stream)
        expect(answered.attempts).toEqual(["a:first:status", "b:equal:answered"])
        expect(answered.pauseAfter(0)).toBeLessThan(1000)
        expect(stage.calls()).toEqual([1, 1, 0])
      })

      test.concurrent(`${status}: without one, that long, then the same route once more, ${mode}`, async () => {
        await using stage = await scene(simulator, ["a", "b"])
        stage.vendor("a").behave(limited(status, "1"), { kind: "chat" })
        const answered = await stage.ask(stream)
        expectSuccess(answered, stream)
        expect(answered.attempts).toEqual(["a:first:status", "a:waited:answered"])
        expect(answered.pauseAfter(0)).toBeGreaterThanOrEqual(999)
        expect(stage.calls()).toEqual([2, 0])
      })

      test.concurrent(`${status}: limited again after the wait is the next route's turn, ${mode}`, async () => {
        await using stage = await scene(simulator, ["a", "b"])
        stage.vendor("a").behave(limited(status, "0.3"))
        const answered = await stage.ask(stream)
        expectSuccess(answered, stream)
        expect(answered.attempts).toEqual(["a:first:status", "a:waited:status", "b:next:answered"])
        expect(stage.calls()).toEqual([2, 1])
      })

      test.concurrent(`${status}: an equal route that is limited too is not asked twice, ${mode}`, async () => {
        await using stage = await scene(simulator, ["a", "b", "c"], { routes: twins })
        stage.vendor("a").behave(limited(status, "0.3"))
        stage.vendor("b").behave(limited(status, "0.3"))
        const answered = await stage.ask(stream)
        expectSuccess(answered, stream)
        expect(answered.attempts.map((attempt) => attempt.slice(0, 8))).toEqual([
          "a:first:",
          "b:equal:",
          "b:waited",
          "c:next:a",
        ])
      })
    }

    test.concurrent(`${status}: an HTTP date within three seconds is waited for`, async () => {
      await using stage = await scene(simulator, ["a", "b"])
      stage.vendor("a").behave(limited(status, inSeconds(3)), { kind: "chat" })
      const answered = await stage.ask(false)
      expect(answered.attempts).toEqual(["a:first:status", "a:waited:answered"])
      // A date has whole seconds, so three seconds ahead is at least two from then on.
      expect(answered.pauseAfter(0)).toBeGreaterThanOrEqual(600)
    })
  }

  for (const after of ["4", "3.5", inSeconds(60), "soon", ""]) {
    test.concurrent(`retry-after "${after.slice(0, 5)}" is not waited for`, async () => {
      await using stage = await scene(simulator, ["a", "b"])
      stage.vendor("a").behave(limited(429, after))
      expect((await stage.ask(false)).attempts).toEqual(["a:first:status", "b:next:answered"])
      stage.vendor("a").behave(limited(503, after))
      const unavailable = await stage.ask(false)
      expect(unavailable.attempts).toEqual(["a:first:status", "a:repeat:status", "b:next:answered"])
      expectShortPause(unavailable.pauseAfter(0))
    })
  }

  test.concurrent("a 429 that nobody else could serve is passed with its retry-after", async () => {
    await using stage = await scene(simulator, ["a"])
    const body = '{ "error" : {"message":"slow down" } }'
    stage.vendor("a").behave({ kind: "status", status: 429, body, headers: { "retry-after": "1" } })
    const answered = await stage.ask(false)
    expect([answered.status, answered.text, answered.headers.get("retry-after")]).toEqual([429, body, "1"])
    expect(stage.calls()).toEqual([2])
  })
})

describe("how it ends when no route answers", () => {
  test.concurrent("at most four attempts, repeats included", async () => {
    await using stage = await scene(simulator, ["a", "b", "c", "d", "e"])
    for (const name of ["a", "b", "c", "d", "e"]) stage.vendor(name).behave({ kind: "status", status: 500 })
    expectError(await stage.ask(false), 502, "api_error", "upstream_error")
    expect(stage.calls()).toEqual([2, 2, 0, 0, 0])
  })

  for (const [mode, stream] of modes) {
    test.concurrent(`the last upstream's 4xx is passed with its own bytes, ${mode}`, async () => {
      await using stage = await scene(simulator, ["a", "b", "c", "d", "e"])
      for (const name of ["a", "b", "c", "d", "e"]) {
        stage
          .vendor(name)
          .behave({ kind: "status", status: name === "d" ? 403 : 429, body: `  {"said by": "${name}"}\n` })
      }
      const answered = await stage.ask(stream)
      expect([answered.status, answered.text]).toEqual([403, '  {"said by": "d"}\n'])
      expect(stage.calls()).toEqual([1, 1, 1, 1, 0])
      expect(answered.story).toMatchObject({ ending: "refused", error: null, usage: null, status: 403 })
    })
  }

  test.concurrent("a 5xx last is upstream_error, also when others could not be reached", async () => {
    const baseUrl = `${gone.url}/a/v1`
    await using stage = await scene(simulator, ["a", "b"], { each: { a: { baseUrl } } })
    stage.vendor("b").behave({ kind: "status", status: 500 })
    expectError(await stage.ask(false), 502, "api_error", "upstream_error")
    expect(stage.calls()).toEqual([0, 2])
  })

  test.concurrent("every route without an HTTP answer is upstream_unreachable", async () => {
    const baseUrl = `${gone.url}/a/v1`
    await using stage = await scene(simulator, ["a", "b"], { each: { a: { baseUrl } } })
    stage.vendor("b").behave({ kind: "reset" })
    const answered = await stage.ask(true)
    expectError(answered, 502, "api_error", "upstream_unreachable")
    expect(answered.attempts).toHaveLength(4)
  })
})

describe("any other 4xx is the client's", () => {
  const statuses = [
    400, 405, 406, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422, 423, 424, 428, 431, 451, 499,
  ]
  for (const [mode, stream] of modes) {
    test.concurrent(`passed at once with status, bytes and content-type, ${mode}`, async () => {
      await using stage = await scene(simulator, ["a", "b"])
      for (const status of statuses) {
        stage.vendor("a").reset()
        const body = `{"error" : {"message":"ünïcode \\u00e9", "n": 1.0, "code": ${status}}}\r\n`
        const headers = { "content-type": "application/problem+json; charset=UTF-8" }
        stage.vendor("a").behave({ kind: "status", status, body, headers })
        const answered = await stage.ask(stream)
        expect([answered.status, answered.text]).toEqual([status, body])
        expect(answered.headers.get("content-type")).toBe(headers["content-type"])
        expect(answered.story).toMatchObject({ ending: "refused", usage: null, status })
        expect(stage.calls()).toEqual([1, 0])
      }
    })
  }

  test.concurrent("bodies that are not JSON pass as they are", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    for (const [type, body] of [
      ["text/plain", "no"],
      ["text/html", "<h1>no</h1>"],
      ["application/json", ""],
    ] as const) {
      stage.vendor("a").behave({ kind: "status", status: 422, body, headers: { "content-type": type } })
      const answered = await stage.ask(false)
      expect([answered.status, answered.text, answered.headers.get("content-type")]).toEqual([422, body, type])
    }
    expect(stage.calls()).toEqual([3, 0])
  })
})
