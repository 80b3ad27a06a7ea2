import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { eventually, headerOf, testKey } from "../support/gateway.ts"
import { type ImageScene, imageScene, slowJob } from "../support/image-scene.ts"
import { type RawConnection, rawChunk, rawConnection, rawHead, rawRequest } from "../support/raw-http.ts"
import { chunk, messages, type Scene, type SceneOptions, scene } from "../support/scene.ts"
import { acme, plan, slotsHeld, untilHeld } from "../support/slots.ts"

setDefaultTimeout(60_000)
const simulator = await startSimulator()
afterAll(() => simulator.stop())

/** One slot, so that one that is not given back shows in the very next request. */
const oneSlot = { plans: [plan(1)], accounts: [acme(null)] } satisfies SceneOptions
const mebibyte = 1024 * 1024
const headers = [`Authorization: Bearer ${testKey}`, "Content-Type: application/json"]

/** Within a second of its end the request holds nothing, and the next one is served. */
async function expectBack(stage: Scene): Promise<void> {
  expect(await untilHeld(stage.gateway, 0)).toBeLessThan(1000)
  stage.vendor("a").behave({ kind: "chat" })
  const next = await stage.gateway.chat({ model: "solo", messages })
  await next.text()
  expect(next.status).not.toBe(429)
  expect(await slotsHeld(stage.gateway)).toBe(0)
  expect(stage.gateway.complaints).toEqual([])
}

async function send(stage: Scene, body: object, path = "/v1/chat/completions"): Promise<RawConnection> {
  const connection = await rawConnection(stage.gateway.url)
  connection.send(rawRequest(path, headers, JSON.stringify({ model: "m", messages, ...body })))
  return connection
}

const modes = [
  ["streamed", { stream: true }],
  ["not streamed", {}],
] as const
const words = [chunk({ content: "hello " }), chunk({ content: "world" })]

describe.each(modes)("%s", (_, mode) => {
  const stream = "stream" in mode
  const endings: Readonly<Record<string, { readonly step: Behaviour; readonly status: number }>> = {
    success: { step: { kind: "chat" }, status: 200 },
    "the caller's 4xx": { step: { kind: "status", status: 400 }, status: 400 },
    "a refusal of the vendor": { step: { kind: "status", status: 401 }, status: 401 },
    "5xx twice": { step: { kind: "status", status: 500 }, status: 502 },
    "resets twice": { step: { kind: "reset" }, status: 502 },
    "no HTTP": { step: { kind: "garbage" }, status: 502 },
    "a web page": { step: { kind: "html", status: 200 }, status: 502 },
    "a redirect": { step: { kind: "status", status: 302, headers: { location: "/x" } }, status: 502 },
    "a compressed answer": { step: { kind: "gzip", inner: { kind: "chat" } }, status: 200 },
  }
  test.each(Object.keys(endings))("after %s", async (name) => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    const { step, status } = endings[name]!
    stage.vendor("a").behave(step)
    expect((await stage.ask(stream)).status).toBe(status)
    // The caller has its last byte, so the slot is free already: nothing to wait for.
    expect(await slotsHeld(stage.gateway)).toBe(0)
    await expectBack(stage)
  })

  test("after an upstream that refuses connections", async () => {
    const gone = await startSimulator()
    const { baseUrl } = gone.vendor("gone")
    await gone.stop()
    await using stage = await scene(simulator, ["a", "b"], {
      ...oneSlot,
      routes: [{ upstream: "b" }],
      each: { b: { baseUrl } },
    })
    expect((await stage.ask(stream)).status).toBe(502)
    await expectBack(stage)
  })

  test("during four attempts exactly one is held", async () => {
    await using stage = await scene(simulator, ["a", "b"], oneSlot)
    stage.vendor("a").behave({ kind: "status", status: 500, delayMs: 50 })
    stage.vendor("b").behave({ kind: "status", status: 503, delayMs: 50 })
    let over = false
    const asked = stage.ask(stream).finally(() => {
      over = true
    })
    await eventually(() => stage.calls()[0] === 1)
    const samples: number[] = []
    while (!over) {
      const held = await slotsHeld(stage.gateway)
      // The answer may have come while the back office was asked.
      if (!over) samples.push(held)
      await Bun.sleep(10)
    }
    expect(samples.length).toBeGreaterThan(10)
    expect(samples.filter((held) => held !== 1)).toEqual([])
    expect(stage.calls()).toEqual([2, 2])
    expect((await asked).status).toBe(502)
    await expectBack(stage)
  })

  const pauses: readonly (readonly [string, Behaviour])[] = [
    ["a retry-after", { kind: "status", status: 429, headers: { "retry-after": "3" } }],
    ["the pause before a repeat", { kind: "status", status: 500 }],
  ]
  test.each([...pauses])("after a caller that leaves during %s", async (_, step) => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    stage.vendor("a").behave(step)
    const client = await send(stage, mode)
    await eventually(() => stage.gateway.failedAttempts.length === 1)
    client.leave()
    await expectBack(stage)
    // The one that left and the one that was served after it.
    expect(stage.calls()).toEqual([2])
  })
})

describe("time-outs", () => {
  const cases: readonly (readonly [string, SceneOptions["timeouts"], Behaviour, boolean])[] = [
    ["request_timeout", { nonStream: 300 }, { kind: "hang" }, false],
    ["first_token_timeout", { firstToken: 300 }, { kind: "hang" }, true],
    ["stream_silence_timeout", { silence: 300 }, { kind: "stream", frames: words, end: "stall" }, true],
    ["stream_total_timeout", { total: 300 }, { kind: "stream", frames: words, end: "stall" }, true],
    ["stream_total_timeout", { total: 300, firstToken: 9000 }, { kind: "hang" }, true],
  ]
  test.each([...cases])("%s %j", async (code, timeouts, step, stream) => {
    await using stage = await scene(simulator, ["a"], { ...oneSlot, timeouts: timeouts! })
    stage.vendor("a").behave(step)
    const asked = stage.ask(stream)
    await untilHeld(stage.gateway, 1)
    expect((await asked).text).toContain(`"code":"${code}"`)
    await expectBack(stage)
  })

  test("a stream whose caller does not read is cut at the total", async () => {
    await using stage = await scene(simulator, ["a"], { ...oneSlot, timeouts: { total: 700 } })
    stage.vendor("a").behave({ kind: "big", megabytes: 200, stream: true })
    const client = await send(stage, { stream: true })
    client.socket.pause()
    await untilHeld(stage.gateway, 1)
    await untilHeld(stage.gateway, 0)
    await expectBack(stage)
    // What was produced is counted first, which takes its time.
    expect((await eventually(() => stage.gateway.stories.find(({ stream }) => stream), 30_000)).error).toBe(
      "stream_total_timeout",
    )
    client.leave()
  })
})

describe("callers that leave", () => {
  const ways = ["destroy", "resetAndDestroy"] as const

  test.each(ways)("before the headers (%s)", async (way) => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    stage.vendor("a").behave({ kind: "hang" })
    const client = await send(stage, { stream: true })
    await untilHeld(stage.gateway, 1)
    client.socket[way]()
    await expectBack(stage)
  })

  test.each(ways)("in mid-stream (%s)", async (way) => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    stage.vendor("a").behave({ kind: "stream", frames: words, end: "stall" })
    const client = await send(stage, { stream: true })
    await new Promise((resolve) => client.socket.once("data", resolve))
    expect(await slotsHeld(stage.gateway)).toBe(1)
    client.socket[way]()
    await expectBack(stage)
  })

  test.each(ways)("after the last byte (%s)", async (way) => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    for (const [, mode] of modes) {
      const client = await send(stage, mode)
      expect((await client.response()).status).toBe(200)
      client.socket[way]()
      await expectBack(stage)
    }
  })

  test("from a call that is not streamed: as soon as the vendor has answered", async () => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    stage.vendor("a").behave({ kind: "chat", headDelayMs: 400 })
    const client = await send(stage, {})
    await untilHeld(stage.gateway, 1)
    client.leave()
    const story = await eventually(() => stage.gateway.stories[0])
    expect(story.usage?.output).toBeGreaterThan(0)
    await expectBack(stage)
  })

  test("in the middle of an upload: nothing was held", async () => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    const client = await rawConnection(stage.gateway.url)
    client.send(rawHead("/v1/chat/completions", [...headers, "Content-Length: 1000000"]))
    client.send('{"model":"m","messages":[')
    await eventually(() => stage.gateway.inFlight === 1)
    expect(await slotsHeld(stage.gateway)).toBe(0)
    client.leave()
    await eventually(() => stage.gateway.inFlight <= 1)
    await expectBack(stage)
    expect(stage.calls()).toEqual([1])
  })
})

describe("streams that end otherwise", () => {
  const cases: Readonly<Record<string, Behaviour>> = {
    "a clean end without a finish": { kind: "stream", frames: words },
    "a FIN in mid-body": { kind: "stream", frames: words, end: "fin" },
    "a reset in mid-body": { kind: "stream", frames: words, end: "rst" },
    "an error event": { kind: "stream", frames: [...words, 'data: {"error":{"message":"over"}}\n\n'] },
    "an empty stream": { kind: "stream", body: "" },
    "an error at first": { kind: "stream", body: 'data: {"error":{"message":"over"}}\n\n' },
    "no end marker": { kind: "chat", done: false },
    "no usage": { kind: "chat", usage: "none" },
    "a second end marker and more": {
      kind: "stream",
      body: `${words.join("")}${chunk({}, "stop")}data: [DONE]\n\ndata: [DONE]\n\n`,
      end: "stall",
    },
  }
  test.each(Object.keys(cases))("after %s", async (name) => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    stage.vendor("a").behave(cases[name]!)
    await stage.ask(true)
    await expectBack(stage)
  })
})

describe("requests that are refused", () => {
  const bodies: Readonly<Record<string, readonly [body: string, status: number]>> = {
    "a body that is no JSON": ['{"model":"m",', 400],
    "no model": ["{}", 400],
    "two models": ['{"model":"m","model":"m"}', 400],
    "an unknown model": ['{"model":"nobody"}', 404],
  }
  test.each(Object.keys(bodies))("after %s", async (name) => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    const [body, status] = bodies[name]!
    const response = await stage.gateway.chat(body)
    expect(response.status).toBe(status)
    await response.text()
    await expectBack(stage)
    expect(stage.calls()).toEqual([1])
  })

  test("after 413 by its length", async () => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    const client = await rawConnection(stage.gateway.url)
    client.send(rawHead("/v1/chat/completions", [...headers, `Content-Length: ${100 * mebibyte + 1}`]))
    expect((await client.response()).status).toBe(413)
    client.leave()
    await expectBack(stage)
  })

  test("after 413 by counting a chunked body", async () => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    const client = await rawConnection(stage.gateway.url)
    client.send(rawHead("/v1/embeddings", [...headers, "Transfer-Encoding: chunked"]))
    client.send(rawChunk('{"model":"m","input":"'))
    const mebibytes = rawChunk(Buffer.alloc(mebibyte, "x"))
    for (let sent = 0; sent < 32; sent++) client.send(mebibytes)
    expect((await client.response()).status).toBe(413)
    client.leave()
    await expectBack(stage)
    expect(stage.calls()).toEqual([1])
  })

  test("after the refusal at the limit itself", async () => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    stage.vendor("a").behave({ kind: "stream", frames: words, end: "stall" })
    const client = await send(stage, { stream: true })
    await untilHeld(stage.gateway, 1)
    for (let refused = 0; refused < 20; refused++) {
      const response = await stage.gateway.chat({ model: "m", messages })
      expect(response.status).toBe(429)
      await response.text()
    }
    expect(await slotsHeld(stage.gateway)).toBe(1)
    client.leave()
    await expectBack(stage)
  })

  test("after a vendor that is at its own limit", async () => {
    await using stage = await scene(simulator, ["a"], {
      plans: [plan(2)],
      accounts: [acme(null)],
      each: { a: { concurrency: 1 } },
    })
    stage.vendor("a").behave({ kind: "stream", frames: words, end: "stall" })
    const client = await send(stage, { stream: true })
    await untilHeld(stage.gateway, 1)
    await eventually(() => stage.calls()[0] === 1)
    const response = await stage.gateway.chat({ model: "m", messages })
    expect(response.status).toBe(503)
    await response.text()
    expect(await slotsHeld(stage.gateway)).toBe(1)
    client.leave()
    await expectBack(stage)
  })
})

describe("answers that are passed on as they come", () => {
  const speak = { input: "hello", voice: "alloy" }

  async function speaking(stage: Scene, step: Behaviour): Promise<RawConnection> {
    stage.vendor("a").behave(step)
    const client = await send(stage, speak, "/v1/audio/speech")
    await untilHeld(stage.gateway, 1)
    return client
  }

  test("read to the end", async () => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    const client = await speaking(stage, { kind: "speech", chunks: 8, gapMs: 50 })
    expect((await client.response()).status).toBe(200)
    expect(await slotsHeld(stage.gateway)).toBe(0)
    await expectBack(stage)
  })

  test("aborted by the caller in mid-download", async () => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    const client = await speaking(stage, { kind: "speech", chunks: 8, gapMs: 2000 })
    await new Promise((resolve) => client.socket.once("data", resolve))
    expect(await slotsHeld(stage.gateway)).toBe(1)
    client.leave()
    await expectBack(stage)
    await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
  })

  test("aborted by a caller that does not read", async () => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    const client = await speaking(stage, { kind: "speech", megabytes: 300 })
    client.socket.pause()
    await eventually(() => (stage.vendor("a").calls[0]?.bytesSent ?? 0) > 0)
    client.leave()
    await expectBack(stage)
  })

  test.each(["fin", "rst"] as const)("broken off by the vendor (%s)", async (how) => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    const client = await speaking(stage, { kind: "speech", chunks: 8, gapMs: 100, cut: { afterEvents: 3, how } })
    await client.closed
    await expectBack(stage)
  })

  test("cut at the request's limit", async () => {
    await using stage = await scene(simulator, ["a"], { ...oneSlot, timeouts: { nonStream: 500 } })
    const client = await speaking(stage, { kind: "speech", chunks: 8, gapMs: 2000 })
    await client.closed
    await expectBack(stage)
  })
})

describe("image jobs", () => {
  async function expectFree(stage: ImageScene): Promise<void> {
    expect(await untilHeld(stage.gateway, 0)).toBeLessThan(1000)
    stage.vendor("fal").behave(slowJob())
    expect((await stage.ask()).status).toBe(200)
    expect(await slotsHeld(stage.gateway)).toBe(0)
  }

  test("made, failed, refused or stuck: held while the job runs, and no longer", async () => {
    const steps: readonly (readonly [Behaviour, number])[] = [
      [slowJob(), 200],
      [slowJob({ outcome: "failed" }), 502],
      [{ kind: "status", status: 422, delayMs: 1000 }, 422],
      [slowJob({ outcome: "stuck" }), 504],
    ]
    const run = async (step: Behaviour, status: number): Promise<void> => {
      await using stage = await imageScene(simulator, ["fal"], { ...oneSlot, timeouts: { nonStream: 3000 } })
      stage.vendor("fal").behave(step)
      const asked = stage.ask()
      await untilHeld(stage.gateway, 1)
      expect((await stage.post()).status).toBe(429)
      expect((await asked).status).toBe(status)
      await expectFree(stage)
    }
    await Promise.all(steps.map(([step, status]) => run(step, status)))
  })

  test("cancelled because the caller left", async () => {
    await using stage = await imageScene(simulator, ["fal"], oneSlot)
    stage.vendor("fal").behave(slowJob({ outcome: "stuck" }))
    const leaving = new AbortController()
    const asked = stage.post({}, { signal: leaving.signal }).catch(() => null)
    await eventually(() => stage.polls("fal").length === 1)
    expect(await slotsHeld(stage.gateway)).toBe(1)
    leaving.abort()
    await asked
    expect(await untilHeld(stage.gateway, 0)).toBeLessThan(1000)
    const cancel = await eventually(() => stage.cancels("fal")[0])
    expect(headerOf(cancel, "authorization")).toBe("Key credential-of-fal")
    await expectFree(stage)
  })
})
