import { afterAll, describe, expect, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { queuedJob } from "../store/job-samples.ts"
import { idOf } from "../store/records.ts"
import { account, keyOf } from "../support/accounts.ts"
import { eventually, model, startGateway, testAdminToken, upstream } from "../support/gateway.ts"
import { until } from "../support/workbench.ts"

const simulator = await startSimulator()
const gateway = await startGateway({
  upstreams: ["steady", "shaky", "spare"].map((name) => upstream(name, simulator.vendor(name).baseUrl)),
  models: [model("m", ["steady"]), model("risky", ["shaky", "spare"]), model("vendor/slashed name", ["steady"])],
  plans: [{ name: "default", concurrency: 7, models: ["*"], priceMultiplier: "1" }],
  accounts: [account("acme"), account("quiet"), account("tight", { concurrency: 1 })],
})
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

function get(path: string, token: string | null = testAdminToken, init: RequestInit = {}): Promise<Response> {
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` }
  return fetch(gateway.url + path, { ...init, headers })
}

async function read<T>(path: string): Promise<T> {
  const response = await get(path)
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

function chat(who: string, body: object): Promise<Response> {
  const headers = { authorization: `Bearer ${keyOf(who)}`, "content-type": "application/json" }
  const text = JSON.stringify({ model: "m", messages: [], ...body })
  return fetch(`${gateway.url}/v1/chat/completions`, { method: "POST", headers, body: text })
}

async function inFlight(who: string): Promise<number> {
  return (await read<{ in_flight: number }>(`/api/accounts/${who}`)).in_flight
}

async function eventuallyInFlight(who: string, count: number): Promise<void> {
  const until = performance.now() + 5000
  while ((await inFlight(who)) !== count) {
    if (performance.now() > until) throw new Error(`${who} still has ${await inFlight(who)} in flight, not ${count}`)
    await Bun.sleep(5)
  }
}

describe("in_flight", () => {
  test("counts streams that run, one by one, and falls back to 0 when they end or are left", async () => {
    simulator.vendor("steady").behave({ kind: "chat", chunks: 500, gapMs: 20 })
    expect(await inFlight("acme")).toBe(0)
    const first = await chat("acme", { stream: true })
    expect(await inFlight("acme")).toBe(1)
    const second = await chat("acme", { stream: true })
    expect(await inFlight("acme")).toBe(2)
    expect(await inFlight("quiet")).toBe(0)
    const { data } = await read<{ data: { name: string; in_flight: number }[] }>("/api/accounts")
    expect(data.map(({ name, in_flight }) => [name, in_flight]).sort()).toEqual([
      ["acme", 2],
      ["quiet", 0],
      ["tight", 0],
    ])
    await first.body!.cancel()
    await eventuallyInFlight("acme", 1)
    await second.body!.cancel()
    await eventuallyInFlight("acme", 0)

    simulator.vendor("steady").behave({ kind: "chat", text: "Hello." })
    await (await chat("acme", { stream: true })).text()
    await eventuallyInFlight("acme", 0)
  })

  test("counts a request that waits for its answer, and no refused one", async () => {
    simulator.vendor("steady").reset()
    simulator.vendor("steady").behave({ kind: "chat", headDelayMs: 400 }, { kind: "chat" })
    const waiting = chat("tight", {})
    await eventually(() => simulator.vendor("steady").openCalls() === 1)
    expect(await inFlight("tight")).toBe(1)
    expect((await chat("tight", {})).status).toBe(429)
    expect((await chat("tight", { model: "nope" })).status).toBe(404)
    expect(await inFlight("tight")).toBe(1)
    expect((await waiting).status).toBe(200)
    await eventuallyInFlight("tight", 0)
    expect((await chat("tight", {})).status).toBe(200)
  })

  test("asking the back office takes no slot itself", async () => {
    await Promise.all(Array.from({ length: 50 }, () => inFlight("acme")))
    expect(await inFlight("acme")).toBe(0)
    await eventually(() => gateway.inFlight === 0)
  })
})

test("an account is shown as it stands, by name and by id", async () => {
  const tight = await read<Record<string, unknown>>("/api/accounts/tight")
  expect(tight).toEqual({
    id: expect.any(String),
    name: "tight",
    plan: "default",
    concurrency: 1,
    effective_concurrency: 1,
    suspended: false,
    balance: "100",
    in_flight: 0,
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  })
  expect(await read<unknown>(`/api/accounts/${String(tight.id)}`)).toEqual(tight)
  expect(await read<unknown>("/api/accounts/acme")).toMatchObject({ concurrency: null, effective_concurrency: 7 })
})

test("a circuit is closed, open after failures, and of this upstream alone", async () => {
  const circuits = async (): Promise<Record<string, string>> => {
    const { data } = await read<{ data: { name: string; circuit: string }[] }>("/api/upstreams")
    return Object.fromEntries(data.map(({ name, circuit }) => [name, circuit]))
  }
  expect(await circuits()).toEqual({ shaky: "closed", spare: "closed", steady: "closed" })
  simulator.vendor("shaky").behave({ kind: "status", status: 302, headers: { location: "/elsewhere" } })
  for (let failure = 1; failure <= 5; failure++) {
    expect(await circuits()).toMatchObject({ shaky: "closed" })
    expect((await chat("acme", { model: "risky" })).status).toBe(200)
  }
  expect(await circuits()).toEqual({ shaky: "open", spare: "closed", steady: "closed" })
  expect(await read<unknown>("/api/upstreams/shaky")).toMatchObject({ name: "shaky", circuit: "open", credentials: 1 })
  const open = await read<{ data: { name: string }[] }>("/api/upstreams?circuit=open")
  expect(open.data.map(({ name }) => name)).toEqual(["shaky"])
})

test("models are shown with their routes; a name with a slash is found raw and encoded", async () => {
  for (const path of ["vendor/slashed%20name", "vendor%2Fslashed%20name"]) {
    expect(await read<unknown>(`/api/models/${path}`)).toMatchObject({
      name: "vendor/slashed name",
      price: "free",
      routes: [{ upstream: "steady", priority: 1, weight: 100 }],
    })
  }
})

test("what is applied while the gateway runs is shown at once", async () => {
  await gateway.apply({ models: [model("brand-new", ["steady"])] })
  expect(await read<unknown>("/api/models/brand-new")).toMatchObject({ name: "brand-new" })
})

describe("the door", () => {
  const paths = ["/api/accounts", "/api/accounts/acme", "/api/upstreams", "/api/models", "/api/openapi.json", "/api/x"]
  test.each(paths)("%s without the admin token is 401, whatever else is sent", async (path) => {
    for (const token of [null, "wrong", keyOf("acme"), `${testAdminToken}x`]) {
      const response = await get(path, token)
      expect([response.status, response.headers.get("www-authenticate")]).toEqual([401, "Bearer"])
      expect(response.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/)
      expect(await response.json()).toEqual({
        error: {
          message: expect.any(String),
          type: "invalid_request_error",
          param: null,
          code: "invalid_api_key",
        },
      })
    }
  })

  test("the admin token opens nothing of the model API", async () => {
    expect((await get("/v1/models")).status).toBe(401)
  })

  test("unknown paths are 404, wrong methods 405, wrong parameters 400, each in the envelope with the request's id", async () => {
    const asks: [string, string, number, string][] = [
      ["GET", "/api/nothing", 404, "not_found"],
      ["GET", "/api/accounts/nobody", 404, "not_found"],
      ["DELETE", "/api/accounts", 405, "method_not_allowed"],
      ["GET", "/api/accounts?limit=0", 400, "invalid_parameter"],
      ["GET", "/api/accounts?nonsense=1", 400, "invalid_parameter"],
    ]
    for (const [method, path, status, code] of asks) {
      const response = await get(path, testAdminToken, { method })
      const id = response.headers.get("x-request-id")
      expect([path, response.status, await response.json()]).toEqual([
        path,
        status,
        { error: { type: expect.any(String), code, message: expect.any(String), request_id: id }, request_id: id },
      ])
      expect(response.headers.get("cache-control")).toBe("no-store")
    }
  })
})

test("openapi.json describes what is served here, and every path in it answers", async () => {
  const response = await get("/api/openapi.json")
  expect(response.headers.get("content-type")).toStartWith("application/json")
  const { openapi, paths } = (await response.json()) as { openapi: string; paths: Record<string, object> }
  expect(openapi).toStartWith("3.1")
  const request = String((await chat("quiet", {})).headers.get("x-request-id"))
  // What is not charged is on record a moment after its answer.
  await until(async () => (await get(`/api/requests/${request}`)).status === 200)
  const job = await queuedJob(gateway.store, await idOf(gateway.store, "quiet"))
  const examples: Record<string, string> = { a: "acme", u: "steady", m: "m", r: request, j: job.id }
  expect(Object.keys(paths)).toEqual(expect.arrayContaining(["/api/accounts/{a}", "/api/upstreams", "/api/models"]))
  for (const path of Object.keys(paths).filter((each) => "get" in paths[each]!)) {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => examples[name] ?? `no-example-for-${name}`)
    expect([path, (await get(filled)).status]).toEqual([path, 200])
  }
})

test("nothing secret is in any answer", async () => {
  const texts = await Promise.all(
    ["/api/accounts", "/api/upstreams", "/api/upstreams/steady", "/api/models"].map(async (path) =>
      (await get(path)).text(),
    ),
  )
  for (const secret of ["credential-of-", keyOf("acme"), testAdminToken]) {
    for (const text of texts) expect(text).not.toContain(secret)
  }
})

test("while draining the back office is as closed as all else but the health paths", async () => {
  simulator.vendor("steady").behave({ kind: "chat", chunks: 200, gapMs: 20 })
  const held = await chat("acme", { stream: true })
  const drained = gateway.drain()
  const response = await get("/api/accounts")
  expect([response.status, await response.text()]).toEqual([503, '{"error":"instance draining"}'])
  expect((await get("/health", null)).status).toBe(200)
  await held.body!.cancel()
  await drained
})
