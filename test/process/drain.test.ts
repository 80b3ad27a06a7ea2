import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { join } from "node:path"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { postChat, readStream } from "../support/chat-client.ts"
import { type Answer, ConnectionEnded, chatRequest, KeepAliveClient } from "../support/keep-alive-client.ts"
import { type Instance, until, workbench } from "../support/workbench.ts"

setDefaultTimeout(30_000)
const bench = workbench()
let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator()
  simulator.vendor("quick").behave({ kind: "chat", text: "quick", headDelayMs: 15 })
  simulator.vendor("slow").behave({ kind: "chat", text: slowText, gapMs: 150 })
  simulator.vendor("late").behave({ kind: "chat", text: "late but whole", headDelayMs: 1200 })
  simulator.vendor("mute").behave({ kind: "hang" })
  const token = { choices: [{ index: 0, delta: { content: "and " } }] }
  simulator.vendor("endless").behave({ kind: "stream", frames: [`data: ${JSON.stringify(token)}\n\n`], end: "stall" })
})
afterAll(async () => {
  await bench.clear()
  await simulator.stop()
})

const key = "sk-drain-0123456789"
const slowText = "every word of this stream must arrive although the instance is about to end"
const drainingBody = '{"error":"instance draining"}'
/** Ending takes a moment without load and two under it; only an instance that hangs takes this long. */
const endsWithinMs = 15_000

let started = 0
async function startInstance(drain: string): Promise<Instance> {
  const names = ["quick", "slow", "late", "endless", "mute"]
  const config = {
    upstreams: names.map((name) => ({
      name,
      vendor: "openai",
      base_url: simulator.vendor(name).baseUrl,
      api_key: "k",
    })),
    models: names.map((name) => ({ name, price: "free", routes: [{ upstream: name }] })),
    accounts: [{ name: "acme", balance: 5, keys: [{ name: "k", key }] }],
    timeouts: { drain },
  }
  const number = ++started
  const file = bench.file(`config-${number}.json`, JSON.stringify(config))
  return bench.start(["serve", "--port", "0", "--config", file, "--data", join(bench.folder, `data-${number}`)])
}

async function exitCode(instance: Instance, withinMs = endsWithinMs): Promise<number | "still running"> {
  return Promise.race([instance.ended, Bun.sleep(withinMs).then(() => "still running" as const)])
}

interface Visits {
  readonly answers: Answer[]
  /** How the connection ended after the last answer. */
  readonly ended: string
}

/** Asks again and again on one connection until it is told to leave, as a pooled client does. */
async function askUntilTurnedAway(port: number): Promise<Visits> {
  const client = await KeepAliveClient.open(port)
  const request = chatRequest(key, { model: "quick" })
  const answers: Answer[] = []
  try {
    for (;;) {
      const answer = await client.ask(request)
      answers.push(answer)
      if (answer.headers.get("connection") === "close") return { answers, ended: await client.ended() }
    }
  } catch (error) {
    if (!(error instanceof ConnectionEnded)) throw error
    return { answers, ended: error.message }
  } finally {
    client.close()
  }
}

test.concurrent("SIGTERM under load: nobody is reset, everybody gets a whole answer or the 503, streams finish, exit code 0", async () => {
  const instance = await startInstance("60s")
  const clients = Array.from({ length: 24 }, () => askUntilTurnedAway(instance.port))
  const streams = await Promise.all(
    Array.from({ length: 5 }, () => postChat(instance.url, key, { model: "slow", stream: true })),
  )
  const slowAnswer = postChat(instance.url, key, { model: "late" })
  await until(() => simulator.vendor("late").openCalls() === 1)

  instance.signal("SIGTERM")
  const health = await until(async () => {
    const response = await fetch(`${instance.url}/health`)
    const body = await response.text()
    return body === '{"status":"draining"}' ? response.status : null
  })
  expect(health).toBe(200)
  const ready = await fetch(`${instance.url}/health/ready`)
  expect([ready.status, await ready.json()]).toEqual([503, { status: "draining" }])
  for (const path of ["/v1/chat/completions", "/v1/models", "/nowhere"]) {
    const refused = await fetch(instance.url + path, { headers: { authorization: `Bearer ${key}` } })
    expect([path, refused.status, await refused.text()]).toEqual([path, 503, drainingBody])
    expect(refused.headers.get("connection")).toBe("close")
    expect(refused.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/)
  }

  for (const { answers, ended } of await Promise.all(clients)) {
    const last = answers.pop()
    expect({ status: last?.status, body: last?.body }).toEqual({ status: 503, body: drainingBody })
    expect(["end", "close"]).toContain(ended)
    expect(answers.length).toBeGreaterThan(0)
    for (const { status, body } of answers) {
      expect(status).toBe(200)
      expect(JSON.parse(body)).toMatchObject({ choices: [{ message: { content: "quick" } }] })
    }
  }
  expect((await slowAnswer).status).toBe(200)
  expect(await (await slowAnswer).json()).toMatchObject({ choices: [{ message: { content: "late but whole" } }] })
  for (const stream of streams) {
    expect(await readStream(stream)).toEqual({ text: slowText, models: ["slow"], last: "[DONE]" })
  }
  expect(await exitCode(instance)).toBe(0)
  expect(await fetch(`${instance.url}/health`).catch((error: Error) => error.name)).not.toBeInstanceOf(Response)
})

test.concurrent("clients that come back on new connections after each 503 do not keep the instance alive", async () => {
  const instance = await startInstance("60s")
  let turnedAway = 0
  let wrong = 0
  const comeBack = async (): Promise<void> => {
    for (;;) {
      const { answers } = await askUntilTurnedAway(instance.port)
      turnedAway += 1
      wrong += answers.filter(({ status, body }) => status !== 200 && body !== drainingBody).length
    }
  }
  const stubborn = Promise.allSettled(Array.from({ length: 4 }, comeBack))
  await until(() => simulator.vendor("quick").calls.length > 4)
  instance.signal("SIGTERM")
  expect(await exitCode(instance)).toBe(0)
  await stubborn
  expect(turnedAway).toBeGreaterThan(4)
  expect(wrong).toBe(0)
})

test.concurrent("the drain time-out cuts what still runs: an in-band error event, no [DONE], exit code 0", async () => {
  const instance = await startInstance("1s")
  const stream = await postChat(instance.url, key, { model: "endless", stream: true })
  expect(stream.status).toBe(200)
  instance.signal("SIGTERM")
  const { text, last } = await readStream(stream)
  expect(text).toBe("and ")
  expect(JSON.parse(last)).toEqual({
    error: {
      type: "overloaded_error",
      code: "backend_unavailable",
      message: expect.any(String),
      request_id: stream.headers.get("x-request-id"),
    },
    request_id: stream.headers.get("x-request-id"),
  })
  expect(await exitCode(instance)).toBe(0)
})

test.concurrent("the drain time-out also ends what has had no byte of an answer yet: 503, or the end of the connection", async () => {
  const instance = await startInstance("1s")
  const ask = async (stream: boolean) => {
    const response = await postChat(instance.url, key, { model: "mute", stream })
    return { status: response.status, ...((await response.json()) as object) }
  }
  const waiting = Promise.all([ask(true), ask(false)])
  const halfSent = await KeepAliveClient.open(instance.port)
  const neverAnswered = halfSent.ask(chatRequest(key, { model: "mute" }).slice(0, -1)).catch((error: unknown) => error)
  await until(() => simulator.vendor("mute").openCalls() === 2)
  instance.signal("SIGTERM")
  for (const answer of await waiting) {
    expect(answer).toMatchObject({ status: 503, error: { type: "overloaded_error", code: "backend_unavailable" } })
  }
  expect(await neverAnswered).toBeInstanceOf(ConnectionEnded)
  expect(await exitCode(instance)).toBe(0)
  await until(() => simulator.vendor("mute").openCalls() === 0)
})

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test.concurrent(`${signal} to an idle instance: exit code 0 at once, idle connections are ended, the port is free`, async () => {
    const instance = await startInstance("60s")
    const idle = await KeepAliveClient.open(instance.port)
    expect(await idle.ask("GET /health HTTP/1.1\r\nhost: gateway\r\n\r\n")).toMatchObject({
      status: 200,
      body: '{"status":"ok"}',
    })
    instance.signal(signal)
    expect(await exitCode(instance)).toBe(0)
    expect(["end", "close"]).toContain(await idle.ended())
    expect(await KeepAliveClient.open(instance.port).catch((error: NodeJS.ErrnoException) => error.code)).toBe(
      "ECONNREFUSED",
    )
  })

  test.concurrent(`a second ${signal} ends at once with exit code 1, running streams or not`, async () => {
    const instance = await startInstance("60s")
    const stream = await postChat(instance.url, key, { model: "endless", stream: true })
    instance.signal(signal)
    await until(async () => (await (await fetch(`${instance.url}/health`)).text()) === '{"status":"draining"}')
    instance.signal(signal)
    expect(await exitCode(instance)).toBe(1)
    const cut = await stream.text().then(
      (text) => text,
      (error: Error) => error,
    )
    expect(String(cut)).not.toContain("[DONE]")
  })
}
