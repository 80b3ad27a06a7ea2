import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { rawClient } from "../../simulator/testing/raw-client.ts"
import { eventually, testKey } from "../support/gateway.ts"
import {
  chatRequest,
  chunk,
  expectSuccess,
  portOf,
  roleChunk,
  type Scene,
  type SceneOptions,
  scene,
} from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => simulator.stop())

const streamed = '{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
const whole = '{"model":"m","messages":[{"role":"user","content":"hi"}]}'
/** The account may have one request in flight, so that a slot which is not given back shows. */
const oneSlot: SceneOptions = {
  plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" }],
  accounts: [{ name: "acme", plan: "default", concurrency: 1, balance: "100", keys: [{ name: "test", key: testKey }] }],
}
const ways = ["fin", "rst"] as const

async function connected(stage: Scene, body: string) {
  const client = await rawClient(portOf(stage.gateway))
  client.send(chatRequest(stage.gateway, body))
  return client
}

/** The upstream call ended because of us, within a second of the client's leaving. */
async function expectAborted(stage: Scene, name: string, leftAt: number): Promise<void> {
  const call = stage.vendor(name).calls[0]!
  await eventually(() => call.endedAt !== null)
  expect(call.closedByPeer).toBeTrue()
  expect(call.endedAt! - leftAt).toBeLessThan(1000)
}

async function expectSlotBack(stage: Scene): Promise<void> {
  await eventually(() => stage.gateway.inFlight === 0)
  stage.vendor("a").behave({ kind: "chat" })
  expectSuccess(await stage.ask(false), false)
}

describe("before the first token", () => {
  const waits: Record<string, Behaviour> = {
    "no headers yet": { kind: "hang" },
    "headers only": { kind: "stream", body: "", end: "stall" },
    "the role and pings": { kind: "stream", body: roleChunk, end: "stall", pingEveryMs: 20 },
  }
  for (const [name, step] of Object.entries(waits)) {
    for (const way of ways) {
      test.concurrent(`the upstream is aborted, nobody else is asked (${name}, ${way})`, async () => {
        await using stage = await scene(simulator, ["a", "b"], oneSlot)
        stage.vendor("a").behave(step)
        const client = await connected(stage, streamed)
        await eventually(() => stage.vendor("a").calls[0]?.bodyComplete)
        await Bun.sleep(50)
        const leftAt = performance.now()
        client.leave(way)
        await expectAborted(stage, "a", leftAt)
        const story = await eventually(() => stage.gateway.stories[0])
        expect(story).toMatchObject({ ending: "client_gone", error: null, usage: null, estimated: false })
        expect(story.attempts).toHaveLength(1)
        await expectSlotBack(stage)
        expect(stage.calls()).toEqual([2, 0])
        expect(stage.gateway.stories).toHaveLength(2)
        // It says nothing about the upstream's health.
        expect(stage.gateway.circuits).toEqual([])
      })
    }
  }
})

describe("in mid-stream", () => {
  const hello = [chunk({ content: "hello " }), chunk({ content: "world" })]
  const flows: Record<string, Behaviour> = {
    "upstream silent": { kind: "stream", frames: hello, end: "stall" },
    "upstream pinging": { kind: "stream", frames: hello, end: "stall", pingEveryMs: 20 },
  }
  for (const [name, step] of Object.entries(flows)) {
    for (const way of ways) {
      test(`the upstream is aborted, what was produced is counted once (${name}, ${way})`, async () => {
        await using stage = await scene(simulator, ["a", "b"], oneSlot)
        stage.vendor("a").behave(step)
        const client = await connected(stage, streamed)
        await client.until("world")
        const leftAt = performance.now()
        client.leave(way)
        await expectAborted(stage, "a", leftAt)
        const story = await eventually(() => stage.gateway.stories[0], 15_000)
        expect(story).toMatchObject({ ending: "client_gone", error: null, estimated: true, usage: { output: 2 } })
        expect(story.usage!.input).toBeGreaterThan(0)
        await expectSlotBack(stage)
        expect(stage.calls()).toEqual([2, 0])
        expect(stage.gateway.stories).toHaveLength(2)
        expect(stage.gateway.circuits).toEqual([])
      })
    }
  }

  test.concurrent("an upstream in full flow is aborted too", async () => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    const usage = { prompt_tokens: 3, completion_tokens: 4 }
    const frames = Array(5000).fill(chunk({ content: "word " }, null, { usage }))
    stage.vendor("a").behave({ kind: "stream", frames, gapMs: 2 })
    const client = await connected(stage, streamed)
    await client.until("word")
    const leftAt = performance.now()
    client.leave()
    await expectAborted(stage, "a", leftAt)
    expect(await eventually(() => stage.gateway.stories[0])).toMatchObject({
      ending: "client_gone",
      estimated: false,
      usage: { input: 3, output: 4 },
    })
    await expectSlotBack(stage)
  })

  // Alone, because so many bytes hold up everyone else.
  test("a client that had stopped reading long before is noticed as well", async () => {
    await using stage = await scene(simulator, ["a"], oneSlot)
    stage.vendor("a").behave({ kind: "big", megabytes: 300, stream: true })
    const client = await connected(stage, streamed)
    await client.until("data: ")
    client.socket.pause()
    // The flow has come to rest once the upstream's counter stands still.
    let sent = -1
    while (sent !== stage.vendor("a").calls[0]!.bytesSent) {
      sent = stage.vendor("a").calls[0]!.bytesSent
      await Bun.sleep(100)
    }
    const leftAt = performance.now()
    client.leave("rst")
    await expectAborted(stage, "a", leftAt)
    await eventually(() => stage.gateway.inFlight === 0, 15_000)
  })
})

describe("in between two attempts", () => {
  for (const [mode, body] of [
    ["streamed", streamed],
    ["not streamed", whole],
  ] as const) {
    for (const [name, step] of [
      ["the pause before a repeat", { kind: "status", status: 500 }],
      ["the wait for a retry-after", { kind: "status", status: 429, headers: { "retry-after": "1" } }],
    ] as const) {
      test.concurrent(`no new attempt is made (${name}, ${mode})`, async () => {
        await using stage = await scene(simulator, ["a", "b"], oneSlot)
        stage.vendor("a").behave(step)
        const client = await connected(stage, body)
        await eventually(() => stage.gateway.failedAttempts.length === 1)
        client.leave()
        const story = await eventually(() => stage.gateway.stories[0])
        expect(story).toMatchObject({ ending: "client_gone", usage: null })
        expect(story.attempts).toHaveLength(1)
        expect(stage.calls()).toEqual([1, 0])
        await expectSlotBack(stage)
      })
    }

    test.concurrent(`a slow refusal is not followed by the next route (${mode})`, async () => {
      await using stage = await scene(simulator, ["a", "b"], oneSlot)
      stage.vendor("a").behave({ kind: "status", status: 401, delayMs: 400 })
      const client = await connected(stage, body)
      await eventually(() => stage.vendor("a").calls.length === 1)
      client.leave()
      const story = await eventually(() => stage.gateway.stories[0])
      expect(story).toMatchObject({ ending: "client_gone", usage: null })
      expect(stage.calls()).toEqual([1, 0])
    })
  }
})

describe("a call that is not streamed", () => {
  for (const way of ways) {
    test.concurrent(`is read to its end, with the real usage (${way})`, async () => {
      await using stage = await scene(simulator, ["a", "b"], oneSlot)
      const usage = { prompt_tokens: 11, completion_tokens: 22, total_tokens: 33 }
      stage.vendor("a").behave({ kind: "chat", headDelayMs: 500, usage })
      const client = await connected(stage, whole)
      await eventually(() => stage.vendor("a").calls[0]?.bodyComplete)
      client.leave(way)
      const story = await eventually(() => stage.gateway.stories[0])
      expect(story).toMatchObject({ estimated: false, usage: { input: 11, output: 22 } })
      expect(stage.vendor("a").calls[0]).toMatchObject({ finished: true, closedByPeer: false })
      await expectSlotBack(stage)
      expect(stage.gateway.stories).toHaveLength(2)
    })
  }
})

test("clients that leave at any moment around the first token leave nothing behind", async () => {
  await using stage = await scene(simulator, ["a"])
  const usage = { prompt_tokens: 3, completion_tokens: 4 }
  const frames = [roleChunk, ...Array(50).fill(chunk({ content: "word " }, null, { usage }))]
  stage.vendor("a").behave({ kind: "stream", frames, gapMs: 10, end: "stall" })
  const visits = Array.from({ length: 150 }, async (_, visitor) => {
    await Bun.sleep((visitor % 15) * 10)
    const client = await connected(stage, streamed)
    await Bun.sleep(visitor % 40)
    client.leave(ways[visitor % 2])
  })
  await Promise.all(visits)
  await eventually(() => stage.gateway.inFlight === 0 && stage.vendor("a").openCalls() === 0, 3000)
  expect(stage.gateway.stories.every(({ ending }) => ending === "client_gone")).toBeTrue()
  expect(stage.gateway.stories.length).toBeGreaterThan(0)
  expect(stage.gateway.complaints).toEqual([])
  stage.vendor("a").behave({ kind: "chat" })
  expectSuccess(await stage.ask(true), true)
})
