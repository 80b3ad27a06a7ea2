import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { rawClient } from "../../simulator/testing/raw-client.ts"
import { eventually, model } from "../support/gateway.ts"
import { chatRequest, chunk, expectError, expectSuccess, portOf, type Scene, scene } from "../support/scene.ts"

setDefaultTimeout(60_000)
const simulator = await startSimulator()
afterAll(() => simulator.stop())

const openMs = 15_000
/** Counts against an upstream's health and is not asked again, so that each request is one call. */
const redirect: Behaviour = { kind: "status", status: 302, headers: { location: "/elsewhere" } }
const well: Behaviour = { kind: "chat" }

async function askTimes(stage: Scene, times: number, more: Readonly<Record<string, unknown>> = {}): Promise<void> {
  for (let round = 0; round < times; round++) expect((await stage.ask(false, more)).status).toBe(200)
}

const pauseIsOver = (openedAt: number): Promise<void> => Bun.sleep(openedAt + openMs + 200 - performance.now())

describe("the circuit opens", () => {
  const failures: Record<string, [step: Behaviour, stream: boolean, callsEach: number]> = {
    "status 500": [{ kind: "status", status: 500 }, false, 2],
    resets: [{ kind: "reset" }, true, 2],
    "no first token": [{ kind: "hang" }, true, 1],
    redirects: [redirect, false, 1],
    "web pages": [{ kind: "html", status: 200 }, false, 2],
  }
  for (const [name, [step, stream, callsEach]] of Object.entries(failures)) {
    test.concurrent(`after five failures in a row, and the route is left alone (${name})`, async () => {
      await using stage = await scene(simulator, ["a", "b"], {
        each: { a: { timeouts: { firstToken: step.kind === "hang" ? 300 : 60_000 } } },
      })
      stage.vendor("a").behave(step)
      for (let calls = callsEach; calls < 5; calls += callsEach) {
        expectSuccess(await stage.ask(stream), stream)
        expect(stage.calls()[0]).toBe(calls)
        expect(stage.gateway.circuits).toEqual([])
      }
      expectSuccess(await stage.ask(stream), stream)
      expect(stage.gateway.circuits).toEqual([{ upstream: "a", state: "open" }])
      stage.vendor("a").behave(well)
      for (let round = 0; round < 10; round++) {
        expect((await stage.ask(round % 2 === 0)).attempts).toEqual(["b:first:answered"])
      }
      expect(stage.calls()[0]).toBe(5)
    })
  }

  test.concurrent("a success in between starts the row anew", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    stage.vendor("a").behave(redirect, redirect, redirect, redirect, well, redirect, redirect, redirect, well)
    await askTimes(stage, 9)
    expect(stage.calls()).toEqual([9, 7])
    expect(stage.gateway.circuits).toEqual([])
  })

  test.concurrent("at half of at least ten calls", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    stage.vendor("a").behave(...Array(5).fill([well, redirect]).flat())
    await askTimes(stage, 9)
    expect(stage.gateway.circuits).toEqual([])
    await askTimes(stage, 1)
    expect(stage.gateway.circuits).toEqual([{ upstream: "a", state: "open" }])
    await askTimes(stage, 5)
    expect(stage.calls()).toEqual([10, 10])
  })

  test.concurrent("not below half", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    stage.vendor("a").behave(...Array(10).fill([well, well, redirect]).flat())
    await askTimes(stage, 30)
    expect(stage.calls()[0]).toBe(30)
    expect(stage.gateway.circuits).toEqual([])
  })

  test.concurrent("for streams that are cut short again and again", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    const usage = { prompt_tokens: 1, completion_tokens: 1 }
    stage.vendor("a").behave({ kind: "stream", body: chunk({ content: "x" }, null, { usage }) })
    for (let round = 0; round < 10; round++) await stage.ask(true)
    expect(stage.gateway.circuits).toEqual([{ upstream: "a", state: "open" }])
    expect(stage.calls()[0]).toBeLessThan(10)
    expect(stage.gateway.stories.at(-1)).toMatchObject({ ending: "completed" })
  })

  test.concurrent("not because of 4xx, however many", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    for (const status of [400, 401, 403, 404, 408, 422, 429]) {
      stage.vendor("a").behave({ kind: "status", status })
      for (let round = 0; round < 12; round++) await stage.ask(false)
    }
    expect(stage.calls()[0]).toBe(84)
    expect(stage.gateway.circuits).toEqual([])
  })

  test.concurrent("of one upstream for all its models, and of no other upstream", async () => {
    await using stage = await scene(simulator, ["a", "b"], {
      models: [model("m", ["a", "b"]), model("other", ["a", "b"]), model("solo", ["b"])],
    })
    stage.vendor("a").behave(redirect)
    await askTimes(stage, 5)
    await askTimes(stage, 3, { model: "other" })
    await askTimes(stage, 3, { model: "solo" })
    expect(stage.calls()).toEqual([5, 11])
  })
})

describe("an open circuit", () => {
  test.concurrent("lets one probe through after the pause; its success closes the circuit", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    stage.vendor("a").behave(redirect)
    await askTimes(stage, 5)
    const openedAt = performance.now()
    stage.vendor("a").behave({ kind: "chat", headDelayMs: 800 })
    while (performance.now() - openedAt < openMs - 1000) {
      await askTimes(stage, 1)
      expect(stage.calls()[0]).toBe(5)
      await Bun.sleep(500)
    }
    await pauseIsOver(openedAt)
    const crowd = await Promise.all(Array.from({ length: 20 }, () => stage.ask(false)))
    for (const answer of crowd) expectSuccess(answer, false)
    expect(crowd.filter(({ attempts }) => attempts[0] === "a:first:answered")).toHaveLength(1)
    expect(stage.calls()[0]).toBe(6)
    expect(stage.gateway.circuits.map(({ state }) => state)).toEqual(["open", "closed"])
    stage.vendor("a").behave(well)
    const after = await Promise.all(Array.from({ length: 10 }, () => stage.ask(true)))
    for (const answer of after) expect(answer.attempts).toEqual(["a:first:answered"])
  })

  test.concurrent("stays open for another pause when the probe fails, and the caller does not notice", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    stage.vendor("a").behave(redirect)
    await askTimes(stage, 5)
    await pauseIsOver(performance.now())
    const probe = await stage.ask(false)
    expect(probe.attempts).toEqual(["a:first:redirect", "b:next:answered"])
    const probedAt = performance.now()
    stage.vendor("a").behave(well)
    for (let round = 0; round < 10; round++) {
      expect((await stage.ask(false)).attempts).toEqual(["b:first:answered"])
      await Bun.sleep(1000)
    }
    await pauseIsOver(probedAt)
    expect((await stage.ask(false)).attempts).toEqual(["a:first:answered"])
    expect(stage.gateway.circuits.map(({ state }) => state)).toEqual(["open", "closed"])
  })

  test.concurrent("is not wedged by a probe whose caller leaves", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    stage.vendor("a").behave(redirect)
    await askTimes(stage, 5)
    const openedAt = performance.now()
    stage.vendor("a").behave({ kind: "hang" })
    await pauseIsOver(openedAt)
    const client = await rawClient(portOf(stage.gateway))
    client.send(chatRequest(stage.gateway, '{"model":"m","stream":true,"messages":[]}'))
    await eventually(() => stage.vendor("a").openCalls() === 1)
    expect((await stage.ask(false)).attempts).toEqual(["b:first:answered"])
    client.leave()
    await eventually(() => stage.gateway.inFlight === 0)
    stage.vendor("a").behave(well)
    expect((await stage.ask(false)).attempts).toEqual(["a:first:answered"])
    expect(stage.gateway.circuits.map(({ state }) => state)).toEqual(["open", "closed"])
  })

  for (const [first, second] of [
    ["a", "b"],
    ["b", "a"],
  ] as const) {
    test.concurrent(`never refuses a request alone: of all open the one that opened first is asked (${first})`, async () => {
      await using stage = await scene(simulator, ["a", "b"], {
        models: [model("m", ["a", "b"]), model("only-a", ["a"]), model("only-b", ["b"])],
      })
      for (const name of [first, second]) {
        stage.vendor(name).behave(redirect)
        for (let round = 0; round < 5; round++) await stage.ask(false, { model: `only-${name}` })
        await Bun.sleep(20)
      }
      expect(stage.gateway.circuits.map(({ upstream }) => upstream)).toEqual([first, second])
      const failed = await stage.ask(false)
      expectError(failed, 502, "api_error", "upstream_invalid_response")
      expect(failed.attempts).toEqual([`${first}:last_resort:redirect`])
      stage.vendor("a").behave(well)
      stage.vendor("b").behave(well)
      // The failed last resort counts as tried just now, so it is the other one's turn.
      expect((await stage.ask(true)).attempts).toEqual([`${second}:last_resort:answered`])
      expect(stage.gateway.circuits.at(-1)).toEqual({ upstream: second, state: "closed" })
    })
  }
})

describe("asking the same route again under load stays under a fifth of the requests", () => {
  /** All at once, but not so many that the clients take every connection the runtime allows a process. */
  const crowd = 100
  const crowds = 3
  const cases: Record<string, Behaviour> = {
    "half of the calls limited for a moment": { kind: "status", status: 429, headers: { "retry-after": "0.2" } },
    "half of the calls failing": { kind: "status", status: 500 },
    "half of the connections reset": { kind: "reset" },
  }
  for (const [name, step] of Object.entries(cases)) {
    test(name, async () => {
      await using stage = await scene(simulator, ["a"])
      stage.vendor("a").behave(
        ...Array(crowd * crowds)
          .fill([step, well])
          .flat(),
      )
      for (let requests = crowd; requests <= crowd * crowds; requests += crowd) {
        await Promise.all(Array.from({ length: crowd }, () => stage.ask(false)))
        const repeats = stage.calls()[0]! - requests
        expect(repeats).toBeGreaterThan(0)
        expect(repeats).toBeLessThanOrEqual(requests * 0.2 + 10)
        const told = stage.gateway.stories.reduce((sum, { attempts }) => sum + attempts.length, 0)
        expect(told).toBe(requests + repeats)
      }
    })
  }

  test("going to the next route is always allowed", async () => {
    await using stage = await scene(simulator, ["a", "b"])
    stage.vendor("a").behave({ kind: "status", status: 429, headers: { "retry-after": "0.2" } })
    const answers = await Promise.all(Array.from({ length: crowd }, () => stage.ask(false)))
    for (const { status } of answers) expect(status).toBe(200)
    expect(stage.calls()[0]! - crowd).toBeLessThanOrEqual(crowd * 0.2 + 10)
    expect(stage.calls()[1]).toBe(crowd)
  })
})
