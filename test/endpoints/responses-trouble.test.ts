import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { endpointScene, postJson } from "../support/endpoints.ts"
import { eventually } from "../support/gateway.ts"
import { eventsOf } from "../support/responses-events.ts"
import { after, delta, frame, preamble, whole } from "../support/responses-frames.ts"
import { type Answer, expectError, readAnswer, type Scene } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(async () => {
  await simulator.stop()
  expect(simulator.complaints).toEqual([])
})

async function ask(stage: Scene, more: object = {}): Promise<Answer> {
  const body = { model: "m", input: "Say hello", ...more }
  return readAnswer(stage.gateway, await postJson(stage.gateway, "/v1/responses", body))
}

describe("trouble", () => {
  const error = frame("error", 5, { code: "server_error", message: "no luck", param: null })

  /** The last event is ours and the only one that is. */
  function expectInBand(answer: Answer, before: string, code: string, sequence: number): void {
    expect(answer.status).toBe(200)
    expect(answer.text.slice(0, before.length)).toBe(before)
    expect(eventsOf(answer.text.slice(before.length))).toEqual([
      {
        type: "error",
        code,
        message: expect.any(String),
        param: null,
        sequence_number: sequence,
        request_id: answer.headers.get("x-request-id"),
      },
    ])
    expect(answer.story).toMatchObject({ ending: "failed", error: code })
  }

  const first: Record<string, Behaviour> = {
    "an error event first": { kind: "stream", body: frame("error", 0, { message: "overloaded" }) },
    "an error after the preamble": { kind: "stream", frames: [...preamble, error], gapMs: 10 },
    "an unnamed error event": { kind: "stream", body: 'data: {"type":"error","message":"overloaded"}\n\n' },
    "an empty stream": { kind: "stream", body: "" },
    "an end after the preamble": { kind: "stream", body: preamble.join("") },
    "a reset after the preamble": { kind: "stream", body: preamble.join(""), end: "rst" },
    "only pings": { kind: "stream", body: ': ping\n\nevent: ping\ndata: {"type":"ping"}\n\n' },
  }
  for (const [about, step] of Object.entries(first)) {
    test.concurrent(`${about}: once more, then the next route, and nothing of the first is seen`, async () => {
      await using stage = await endpointScene(simulator, ["a", "b"])
      stage.vendor("a").behave(step)
      stage.vendor("b").behave({ kind: "stream", body: whole.join("") })
      const answer = await ask(stage)
      expect(answer.text).toBe(whole.join(""))
      expect(stage.calls()).toEqual([2, 1])
      expectError(await ask(stage, { model: "solo" }), 502, "api_error", "upstream_error")
    })
  }

  test.concurrent("an error event later on passes, and nothing is added", async () => {
    await using stage = await endpointScene(simulator, ["a", "b"])
    stage.vendor("a").behave({ kind: "stream", frames: [preamble.join("") + delta, error], gapMs: 300 })
    const answer = await ask(stage)
    expect(answer.text).toBe([...preamble, delta, error].join(""))
    expect(answer.story).toMatchObject({ ending: "failed", error: "upstream_error" })
    expect(stage.calls()).toEqual([1, 0])
  })

  for (const end of ["clean", "fin", "rst"] as const) {
    test.concurrent(`a stream cut by ${end}: an error event, no response.completed, nobody else asked`, async () => {
      await using stage = await endpointScene(simulator, ["a", "b"])
      stage
        .vendor("a")
        .behave({ kind: "stream", frames: [preamble.join("") + delta, after[0]!.slice(0, 30)], gapMs: 300, end })
      const answer = await ask(stage)
      expectInBand(answer, [...preamble, delta].join(""), "upstream_stream_truncated", 5)
      expect(answer.story.estimated).toBeTrue()
      expect(stage.calls()).toEqual([1, 0])
    })
  }

  const silent: Record<string, Behaviour> = {
    "no headers": { kind: "hang" },
    "the preamble and pings": { kind: "stream", body: preamble.join(""), end: "stall", pingEveryMs: 40 },
    "keepalive events": {
      kind: "stream",
      frames: [...preamble, ...Array(100).fill('event: keepalive\ndata: {"type":"keepalive"}\n\n')],
      gapMs: 40,
    },
  }
  for (const [about, step] of Object.entries(silent)) {
    test.concurrent(`no first token in time (${about}): 504, and the next route where there is one`, async () => {
      await using stage = await endpointScene(simulator, ["a", "b"], { timeouts: { firstToken: 1000 } })
      stage.vendor("a").behave(step)
      expectError(await ask(stage, { model: "solo" }), 504, "timeout_error", "first_token_timeout")
      const answer = await ask(stage)
      expect(answer.attempts).toEqual(["a:first:timeout", "b:next:answered"])
    })
  }

  test.concurrent("silence in mid-stream, pings or not", async () => {
    for (const more of [{}, { pingEveryMs: 50 }]) {
      await using stage = await endpointScene(simulator, ["a", "b"], { timeouts: { silence: 400 } })
      stage.vendor("a").behave({ kind: "stream", frames: [...preamble, delta], end: "stall", ...more })
      const answer = await ask(stage)
      const pings = /(: ping\n\n)*(?=event: error)/.exec(answer.text)?.[0] ?? ""
      expectInBand(answer, [...preamble, delta].join("") + pings, "stream_silence_timeout", 5)
      await eventually(() => stage.vendor("a").calls[0]!.closedByPeer)
    }
  })

  test.concurrent("longer than a stream may take", async () => {
    await using stage = await endpointScene(simulator, ["a", "b"], { timeouts: { total: 900 } })
    stage.vendor("a").behave({ kind: "stream", frames: [...preamble, ...Array(100).fill(delta)], gapMs: 60 })
    const answer = await ask(stage)
    const drops = answer.text.split("response.output_text.delta\n").length - 1
    expect(drops).toBeGreaterThan(1)
    expectInBand(answer, preamble.join("") + delta.repeat(drops), "stream_total_timeout", 5)
    expect(stage.calls()).toEqual([1, 0])
  })
})
