import { afterAll, describe, expect, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { account, keyOf } from "../support/accounts.ts"
import { model, startGateway, testAdminToken, upstream } from "../support/gateway.ts"
import { until } from "../support/workbench.ts"

const headerSecret = "header-secret-0123456789"
const simulator = await startSimulator()
const gateway = await startGateway({
  upstreams: [
    upstream("slow", simulator.vendor("slow").baseUrl, { timeouts: { firstToken: 60 } }),
    upstream("ill", simulator.vendor("ill").baseUrl, { headers: { "x-secret": headerSecret } }),
    upstream("good", simulator.vendor("good").baseUrl),
    upstream("painter", simulator.vendor("bfl").baseUrl, { vendor: "bfl" }),
  ],
  models: [
    model("m", ["slow", "ill", "good"], { price: { input: "1000", output: "2000" } }),
    model("picture", ["painter"], { price: { image: "0.04" } }),
    model("ill-only", ["ill"], { price: { input: "1" } }),
  ],
  plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1.5" }],
  accounts: [account("acme"), account("poor", { balance: null })],
})
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

const admin = { authorization: `Bearer ${testAdminToken}`, "content-type": "application/json" }

async function get<T = Record<string, unknown>>(path: string): Promise<T | null> {
  const response = await fetch(gateway.url + path, { headers: admin })
  return response.status === 200 ? ((await response.json()) as T) : null
}

/** What is not charged is on record a moment after its answer. */
function storyOf(response: Response): Promise<Record<string, unknown>> {
  return until(() => get(`/api/requests/${response.headers.get("x-request-id")}`))
}

function call(who: string, path: string, body: object): Promise<Response> {
  const headers = { authorization: `Bearer ${keyOf(who)}`, "content-type": "application/json" }
  return fetch(gateway.url + path, { method: "POST", headers, body: JSON.stringify(body) })
}

const messages = [{ role: "user", content: "Say hello" }]
const chat = (who: string, body: object) => call(who, "/v1/chat/completions", { messages, ...body })

test("an account without money is let in the moment a top-up is answered, also right after it was refused", async () => {
  simulator.vendor("slow").behave({ kind: "chat" })
  expect((await chat("poor", { model: "m" })).status).toBe(402)
  const body = JSON.stringify({ amount: "0.000000001" })
  const posted = await fetch(`${gateway.url}/api/accounts/poor/topups`, { method: "POST", headers: admin, body })
  expect(posted.status).toBe(201)
  expect((await chat("poor", { model: "m" })).status).toBe(200)
  const { data } = (await get<{ data: object[] }>("/api/ledger?account=poor"))!
  expect(data).toMatchObject([{ kind: "charge", balance_after: expect.stringMatching(/^-/) }, { kind: "topup" }])
  expect((await chat("poor", { model: "m" })).status).toBe(402)
})

test("the story of a request that went over three routes: each attempt and why, the time-out, usage, price and charge", async () => {
  for (const name of ["slow", "ill", "good"]) simulator.vendor(name).reset()
  simulator.vendor("slow").behave({ kind: "chat", headDelayMs: 2000 })
  simulator.vendor("ill").behave({ kind: "status", status: 401, json: { error: "who are you" } })
  simulator.vendor("good").behave({ kind: "chat", text: "Hello." })
  const before = (await get<{ balance: string }>("/api/accounts/acme"))!.balance
  const response = await chat("acme", { model: "m", stream: true })
  await response.text()
  const story = await storyOf(response)
  expect(story).toMatchObject({
    account: "acme",
    key: "k",
    endpoint: "chat",
    model: "m",
    upstream: "good",
    upstream_model: "m-upstream",
    stream: true,
    status: 200,
    error: null,
    ending: "completed",
    attempt_count: 3,
    attempts: [
      { upstream: "slow", why: "first", outcome: "timeout", status: null, detail: "cut off: timeout" },
      { upstream: "ill", why: "next", outcome: "status", status: 401, detail: '401 {"error":"who are you"}' },
      { upstream: "good", why: "next", outcome: "answered", status: 200, detail: null },
    ],
    price: { multiplier: "1.5", units: { input: "1000", output: "2000" } },
    estimated: false,
  })
  const attempts = story.attempts as { started_ms: number; ended_ms: number }[]
  for (const [index, { started_ms, ended_ms }] of attempts.entries()) {
    expect(ended_ms).toBeGreaterThanOrEqual(started_ms)
    expect(started_ms).toBeGreaterThanOrEqual(attempts[index - 1]?.ended_ms ?? 0)
  }
  const { input_tokens, output_tokens } = story.usage as { input_tokens: number; output_tokens: number }
  const nanos = (input_tokens * 1000 + output_tokens * 2000) * 1500
  expect(nanos).toBeGreaterThan(0)
  expect(Math.round(Number(story.charge) * 1e9)).toBe(nanos)
  expect(Math.round((Number(before) - Number(story.balance_after)) * 1e9)).toBe(nanos)
  const [line] = (await get<{ data: object[] }>(`/api/ledger?reference=${story.id}`))!.data
  expect(line).toMatchObject({ account: "acme", amount: `-${story.charge}`, balance_after: story.balance_after })
  const [row] = (await get<{ data: object[] }>("/api/usage?by=total&account=acme&group=upstream"))!.data
  expect(row).toMatchObject({ upstream: "good", requests: 1, charge: story.charge, input_tokens, output_tokens })
})

describe("what an upstream says of our secrets is not put on record", () => {
  const said = `key credential-of-ill, header ${headerSecret}`
  const frame = `data: ${JSON.stringify({ error: { message: said } })}\n\n`

  test.each([
    ["in an error", false, { kind: "status", status: 403, json: { error: said } }],
    ["at the beginning of a stream", true, { kind: "stream", frames: [frame] }],
  ] as const)("%s", async (_, stream, behaviour) => {
    simulator.vendor("ill").reset()
    simulator.vendor("ill").behave(behaviour)
    const response = await chat("acme", { model: "ill-only", stream })
    await response.text()
    const { attempts } = (await storyOf(response)) as { attempts: { detail: string }[] }
    expect(attempts.length).toBeGreaterThan(0)
    for (const { detail } of attempts) expect(detail).toContain("key ***, header ***")
  })

  test("at the place where a long text is cut", async () => {
    for (let padding = 360; padding < 400; padding += 3) {
      simulator.vendor("ill").reset()
      const text = `${"x".repeat(padding)}${headerSecret}`
      simulator.vendor("ill").behave({ kind: "status", status: 403, json: { error: text } })
      const response = await chat("acme", { model: "ill-only" })
      const { attempts } = (await storyOf(response)) as { attempts: { detail: string }[] }
      expect(attempts[0]!.detail).toMatch(/x\**"?\}?$/)
    }
  })

  test("in the refusal of a job", async () => {
    const error = { detail: "no: credential-of-painter" }
    simulator.vendor("bfl").behave({ kind: "status", status: 422, json: error })
    const response = await call("acme", "/v1/images/generations", { model: "picture", prompt: "a gate" })
    expect(response.status).toBe(422)
    const { attempts } = (await storyOf(response)) as { attempts: { detail: string }[] }
    expect(attempts.map(({ detail }) => detail)).toEqual(['422 {"detail":"no: ***"}'])
  })
})
