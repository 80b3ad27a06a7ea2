import { afterAll, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { postChat } from "../support/chat-client.ts"
import { until, workbench } from "../support/workbench.ts"

setDefaultTimeout(60_000)
const bench = workbench()
const simulator = await startSimulator()
afterAll(async () => {
  await bench.clear()
  await simulator.stop()
})

const key = "sk-metrics-0123456789"

function config(): string {
  return JSON.stringify({
    upstreams: [
      { name: "down", vendor: "openai", base_url: simulator.vendor("down").baseUrl, api_key: "k" },
      { name: "up", vendor: "openai", base_url: simulator.vendor("up").baseUrl, api_key: "k" },
      { name: "films", vendor: "kling", base_url: `${simulator.url}/kling`, api_key: "k" },
    ],
    models: [
      {
        name: "m",
        price: "free",
        routes: [
          { upstream: "down", priority: 1 },
          { upstream: "up", priority: 2 },
        ],
      },
      { name: "film", price: { second: 0.01 }, routes: [{ upstream: "films", model: "kling-v3" }] },
    ],
    accounts: [{ name: "acme", balance: 10, keys: [{ name: "k", key }] }],
  })
}

test("what happened is counted: requests, failed asks, a status word of a video job that nobody knows; also while draining", async () => {
  simulator.vendor("down").behave({ kind: "status", status: 401 })
  simulator.vendor("kling").behave({ kind: "video_job", words: ["pondering"], queuedMs: 600_000 })
  const args = ["serve", "--port", "0", "--config", bench.file("metrics.json", config()), "--data", bench.freshData()]
  const instance = await bench.start(args)
  const metrics = async (): Promise<string> => (await fetch(`${instance.url}/metrics`)).text()

  expect((await postChat(instance.url, key, { model: "m" })).status).toBe(200)
  const film = await fetch(`${instance.url}/v1/videos`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "film", prompt: "a gate" }),
  })
  expect(film.status).toBe(200)

  const text = await until(async () => {
    const told = await metrics()
    return told.includes('tollgate_job_odd_status_total{vendor="kling"} 1') ? told : null
  }, 20_000)
  expect(text).toContain('tollgate_requests_total{endpoint="chat",ending="completed"} 1')
  expect(text).toContain('tollgate_requests_total{endpoint="video",ending="completed"} 1')
  expect(text).toContain('tollgate_attempts_failed_total{upstream="down",cause="status"} 1')
  expect(text).not.toContain(key)
  expect(instance.output()).toContain("pondering")

  const stream = await postChat(instance.url, key, { model: "m", stream: true })
  instance.signal("SIGTERM")
  await until(async () => (await fetch(`${instance.url}/v1/models`).catch(() => null))?.status === 503)
  const draining = await fetch(`${instance.url}/metrics`)
  expect([draining.status, draining.headers.get("content-type")]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
  ])
  await stream.text()
  expect(await instance.ended).toBe(0)
})
