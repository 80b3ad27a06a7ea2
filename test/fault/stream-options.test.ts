import { afterAll, expect, setDefaultTimeout, test } from "bun:test"
import type { RecordedCall } from "../../simulator/calls.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { dataOf, expectSuccess, scene } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => simulator.stop())

const bodyOf = (call: RecordedCall | undefined): string => Buffer.from(call?.body ?? []).toString()
const asked = '{"model":"m", "stream": true, "messages":[{"role":"user","content":"hi"}] }'
const sentWithout = asked.replace('"m"', '"m-upstream"')

test("a vendor that refuses stream_options is asked again without, and from then on never with it", async () => {
  await using stage = await scene(simulator, ["a", "b"])
  const vendor = stage.vendor("a")
  vendor.behave({ kind: "echo_stream_options_error" })
  for (const calls of [2, 1, 1]) {
    vendor.reset()
    vendor.behave({ kind: "echo_stream_options_error" })
    const response = await stage.gateway.chat(asked)
    const events = dataOf(await response.text())
    expect(response.status).toBe(200)
    expect(vendor.calls).toHaveLength(calls)
    if (calls === 2) expect(JSON.parse(bodyOf(vendor.calls[0])).stream_options).toEqual({ include_usage: true })
    expect(bodyOf(vendor.calls[calls - 1])).toBe(sentWithout)
    // The client gets its usage chunk all the same: counted here.
    expect(events.at(-1)).toBe("[DONE]")
    expect(JSON.parse(events.at(-2)!)).toMatchObject({ choices: [], usage: { completion_tokens: expect.any(Number) } })
    expect(await stage.gateway.story(response)).toMatchObject({ ending: "completed", estimated: true })
  }
  expect(stage.vendor("b").calls).toHaveLength(0)
  expect(stage.gateway.circuits).toEqual([])
})

test("other upstreams go on being asked for usage", async () => {
  await using stage = await scene(simulator, ["a", "b"])
  stage.vendor("a").behave({ kind: "echo_stream_options_error" })
  await stage.ask(true)
  stage.vendor("a").behave({ kind: "status", status: 429 })
  expectSuccess(await stage.ask(true), true)
  expect(JSON.parse(bodyOf(stage.vendor("b").calls[0])).stream_options).toEqual({ include_usage: true })
})

test("a caller's own bad stream_options is its own 400, and turns nothing off for others", async () => {
  await using stage = await scene(simulator, ["a", "b"])
  const vendor = stage.vendor("a")
  const body = '{"error":{"message":"Unknown parameter: \'stream_options.bogus\'."}}'
  vendor.behave({ kind: "status", status: 400, body })
  const refused = await stage.ask(true, { stream_options: { bogus: 1 } })
  expect([refused.status, refused.text]).toEqual([400, body])
  expect(stage.vendor("b").calls).toHaveLength(0)
  vendor.reset()
  expectSuccess(await stage.ask(true), true)
  expect(vendor.calls).toHaveLength(1)
  expect(JSON.parse(bodyOf(vendor.calls[0])).stream_options).toEqual({ include_usage: true })
})

test("a 400 whose text only happens to name stream_options turns nothing off either", async () => {
  await using stage = await scene(simulator, ["a"])
  const vendor = stage.vendor("a")
  const body = '{"error":{"message":"Invalid role: \'stream_options\'"}}'
  vendor.behave({ kind: "status", status: 400, body })
  const refused = await stage.ask(true, { messages: [{ role: "stream_options", content: "" }] })
  expect([refused.status, refused.text]).toEqual([400, body])
  vendor.reset()
  expectSuccess(await stage.ask(true), true)
})

test("without a stream a 400 that names stream_options is passed after one attempt", async () => {
  await using stage = await scene(simulator, ["a", "b"])
  stage
    .vendor("a")
    .behave({ kind: "status", status: 400, body: '{"error":{"message":"stream_options without stream"}}' })
  expect((await stage.ask(false, { stream_options: {} })).status).toBe(400)
  expect(stage.calls()).toEqual([1, 0])
})
