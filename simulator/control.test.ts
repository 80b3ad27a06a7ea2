import { afterEach, beforeEach, expect, test } from "bun:test"
import { type Simulator, startSimulator } from "./simulator.ts"

let simulator: Simulator
beforeEach(async () => {
  simulator = await startSimulator()
})
afterEach(() => simulator.stop())

const control = (rest: string, init?: RequestInit): Promise<Response> =>
  fetch(`${simulator.url}/_sim/vendors/${rest}`, init)

test("behaviour is set, calls are read with their bodies, and all is reset, over HTTP", async () => {
  const steps = [{ kind: "status", status: 418 }]
  expect((await control("v/behaviour", { method: "POST", body: JSON.stringify(steps) })).status).toBe(200)
  const body = Buffer.from([0, 255, 10])
  const answer = await fetch(`${simulator.url}/v/v1/chat/completions`, { method: "POST", body })
  expect(answer.status).toBe(418)
  const calls = await (await control("v/calls")).json()
  expect(calls).toMatchObject([
    {
      method: "POST",
      path: "/v/v1/chat/completions",
      body: body.toString("base64"),
      answeredWith: "status",
      finished: true,
    },
  ])
  expect((await control("v", { method: "DELETE" })).status).toBe(200)
  expect(simulator.vendor("v").calls).toEqual([])
  expect((await fetch(`${simulator.url}/v/v1/models`)).status).toBe(200)
})

test("submits of films are counted over HTTP", async () => {
  const body = JSON.stringify({ prompt: "a fox", seconds: "4" })
  const submit = () =>
    fetch(`${simulator.url}/v/v1/videos`, { method: "POST", body, headers: { authorization: "Bearer k" } })
  expect([(await submit()).status, (await submit()).status]).toEqual([200, 200])
  expect(await (await control("v/submits")).json()).toEqual({ "a fox": 2 })
})

test("a bad behaviour is refused with the field's name and changes nothing", async () => {
  simulator.vendor("v").behave({ kind: "status", status: 418 })
  const refused = await control("v/behaviour", { method: "POST", body: '[{"kind":"status","status":"x"}]' })
  expect(refused.status).toBe(400)
  expect(await refused.text()).toContain("behaviour[0].status")
  expect((await control("v/behaviour", { method: "POST", body: "nope" })).status).toBe(400)
  expect((await fetch(`${simulator.url}/v/v1/models`)).status).toBe(418)
})

test("unknown control paths and methods say what is possible", async () => {
  expect((await control("v/nothing")).status).toBe(404)
  const wrong = await control("v/calls", { method: "PUT" })
  expect(wrong.status).toBe(405)
  expect(await wrong.text()).toContain("GET /_sim/vendors/{name}/calls")
})

test("the standalone simulator prints its address in one line, and refuses a bad flag", async () => {
  const run = (...flags: string[]) =>
    Bun.spawn([process.execPath, `${import.meta.dir}/main.ts`, ...flags], { stdout: "pipe", stderr: "pipe" })
  const child = run("--port", "0")
  const { value } = await child.stdout.getReader().read()
  const [, url] = /^simulator listening on (http:\/\/127\.0\.0\.1:\d+)\n$/.exec(Buffer.from(value!).toString()) ?? []
  expect((await fetch(`${url}/any/v1/models`)).status).toBe(200)
  child.kill("SIGTERM")
  expect(await child.exited).toBe(0)
  const bad = run("--port", "many")
  expect(await bad.exited).toBe(2)
  expect(await bad.stderr.text()).toContain("--port many is not a port number")
})
