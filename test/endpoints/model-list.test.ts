import { afterAll, beforeEach, describe, expect, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import { rawClient } from "../../simulator/testing/raw-client.ts"
import { suspendAccount } from "../../src/store/accounts.ts"
import { inTransaction } from "../../src/store/db.ts"
import { account, keyOf } from "../support/accounts.ts"
import { eventually, model, startGateway, upstream } from "../support/gateway.ts"
import { rawHead } from "../support/raw-http.ts"

const limit = 240
const lists = ["/v1/models", "/compat/v1/models"]

const simulator = await startSimulator()
const vendor = simulator.vendor("a")
const names = ["gpt-9", "gpt-9-mini", "gpt-9-mini-2", "vendor/slashed name", "ünïcode", "elsewhere"]
const gateway = await startGateway({
  upstreams: [upstream("a", vendor.baseUrl)],
  models: names.map((name) => model(name, ["a"], name === "elsewhere" ? { endpoints: ["embeddings"] } : {})),
  plans: [
    { name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" },
    { name: "some", concurrency: 0, models: ["gpt-*-mini", "ünïcode", "nothing-such"], priceMultiplier: "1" },
    { name: "none", concurrency: 0, models: [], priceMultiplier: "1" },
    { name: "one", concurrency: 1, models: ["*"], priceMultiplier: "1" },
  ],
  accounts: [
    account("all"),
    account("reader"),
    account("some", { plan: "some" }),
    account("none", { plan: "none" }),
    account("busy", { plan: "one" }),
    account("poor", { balance: null }),
    account("eager"),
    account("calm"),
    account("gone"),
    account("refused"),
  ],
})
beforeEach(() => vendor.reset())
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
})

function get(path: string, who: string, init: RequestInit = {}): Promise<Response> {
  return fetch(gateway.url + path, { ...init, headers: { authorization: `Bearer ${keyOf(who)}` } })
}

function rateHeaders({ headers }: Response): [string | null, string | null] {
  return [headers.get("x-ratelimit-limit"), headers.get("x-ratelimit-remaining")]
}

async function idsOf(path: string, who: string): Promise<string[]> {
  const response = await get(path, who)
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json"])
  const { data } = (await response.json()) as { data: { id: string }[] }
  return data.map(({ id }) => id)
}

describe("the list is what the account's plan allows, on both paths", () => {
  const allowed: Record<string, string[]> = {
    all: [...names].sort(),
    some: ["gpt-9-mini", "ünïcode"],
    none: [],
    poor: [...names].sort(),
  }
  for (const [who, expected] of Object.entries(allowed)) {
    test(`account ${who}: ${expected.length} of ${names.length}`, async () => {
      for (const path of lists) {
        const ids = await idsOf(path, who)
        expect(ids.toSorted()).toEqual(expected)
        for (const name of names) {
          const { status } = await get(`${path}/${encodeURIComponent(name)}`, who)
          expect([name, status]).toEqual([name, expected.includes(name) ? 200 : 404])
        }
      }
      expect(vendor.calls).toHaveLength(0)
    })
  }

  test("both lists have one order, and the exact shape of their own API", async () => {
    const openai = (await (await get("/v1/models", "reader")).json()) as { data: { id: string; created: number }[] }
    const compat = (await (await get("/compat/v1/models", "reader")).json()) as { data: { id: string }[] }
    expect(openai).toEqual({
      object: "list",
      data: openai.data.map(({ id }) => ({ id, object: "model", created: expect.any(Number), owned_by: "tollgate" })),
    } as unknown as typeof openai)
    expect(openai.data[0]!.created).toBeGreaterThan(1_700_000_000)
    expect(openai.data[0]!.created).toBeLessThan(10_000_000_000)
    expect(compat.data.map(({ id }) => id)).toEqual(openai.data.map(({ id }) => id))
    expect(compat).toMatchObject({
      has_more: false,
      first_id: compat.data[0]!.id,
      last_id: compat.data.at(-1)!.id,
    })
  })

  test("a name with a slash is found raw and percent-encoded", async () => {
    for (const path of lists) {
      for (const name of ["vendor/slashed%20name", "vendor%2Fslashed%20name"]) {
        const response = await get(`${path}/${name}`, "reader")
        expect(await response.json()).toMatchObject({ id: "vendor/slashed name" })
      }
    }
  })

  test("a query does not disturb; paging of the compat list goes by name", async () => {
    expect(await idsOf("/v1/models?limit=1&x=y", "reader")).toHaveLength(names.length)
    const all = await idsOf("/compat/v1/models", "reader")
    expect(await idsOf(`/compat/v1/models?limit=2&after_id=${encodeURIComponent(all[1]!)}`, "reader")).toEqual(
      all.slice(2, 4),
    )
    expect(await idsOf(`/compat/v1/models?limit=2&before_id=${encodeURIComponent(all[4]!)}`, "reader")).toEqual(
      all.slice(2, 4),
    )
  })

  test("a model that is added is listed at once", async () => {
    await gateway.apply({ models: [model("brand-new", ["a"])] })
    expect(await idsOf("/v1/models", "reader")).toContain("brand-new")
  })
})

describe("240 calls in 60 s", () => {
  test("remaining goes 239 … 0, then -1: 429 with the exact body; both paths and all kinds of calls share the counter", async () => {
    const targets = [...lists, "/v1/models/gpt-9", "/compat/v1/models/gpt-9", "/v1/models/unknown"]
    for (let count = 1; count <= limit; count++) {
      const response = await get(targets[count % targets.length]!, "eager")
      await response.arrayBuffer()
      expect([response.status === 429, ...rateHeaders(response)]).toEqual([false, "240", String(limit - count)])
    }
    const over = await get("/v1/models", "eager")
    expect([over.status, ...rateHeaders(over)]).toEqual([429, "240", "-1"])
    expect(await over.text()).toBe('{"error":"rate limit exceeded","scope":"user"}')
    expect(over.headers.get("content-type")).toBe("application/json")
    expect(over.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/)
    const compat = await get("/compat/v1/models", "eager")
    expect([compat.status, ...rateHeaders(compat)]).toEqual([429, "240", "-2"])
    expect(await compat.text()).toBe('{"error":"rate limit exceeded","scope":"user"}')
    const one = await get("/v1/models/gpt-9", "eager", { method: "HEAD" })
    expect([one.status, ...rateHeaders(one)]).toEqual([429, "240", "-3"])

    const other = await get("/v1/models", "calm")
    expect([other.status, ...rateHeaders(other)]).toEqual([200, "240", "239"])
    const chat = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${keyOf("eager")}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-9", messages: [] }),
    })
    expect(chat.status).toBe(200)
    expect(rateHeaders(chat)).toEqual([null, null])
  })

  test("a thousand at once: exactly 240 get through", async () => {
    await gateway.apply({ accounts: [account("crowd")] })
    const answers = await Promise.all(
      Array.from({ length: 1000 }, async (_, number) => {
        const response = await get(lists[number % 2]!, "crowd")
        await response.arrayBuffer()
        return { status: response.status, remaining: Number(response.headers.get("x-ratelimit-remaining")) }
      }),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(limit)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(1000 - limit)
    expect(answers.every(({ status, remaining }) => (status === 200) === remaining >= 0)).toBe(true)
    const seen = answers.map(({ remaining }) => remaining).sort((a, b) => b - a)
    expect(seen).toEqual(seen.map((_, position) => limit - 1 - position))
  })

  test("refusals that come after the counter carry the headers; those before it neither count nor carry", async () => {
    const unknown = await get("/v1/models/unknown", "refused")
    expect([unknown.status, ...rateHeaders(unknown)]).toEqual([404, "240", "239"])
    const id = unknown.headers.get("x-request-id")
    expect(await unknown.json()).toEqual({
      error: {
        type: "not_found_error",
        code: "model_not_found",
        message: 'the model "unknown" does not exist or you do not have access to it',
        request_id: id,
      },
      request_id: id,
    })
    const compat = await get("/compat/v1/models/unknown", "refused")
    expect([compat.status, ...rateHeaders(compat)]).toEqual([404, "240", "238"])
    expect(await compat.json()).toMatchObject({ type: "error", error: { code: "model_not_found" } })
    const broken = await get("/compat/v1/models?limit=none", "refused")
    expect([broken.status, ...rateHeaders(broken)]).toEqual([400, "240", "237"])
    expect(await broken.json()).toMatchObject({ type: "error", error: { code: "invalid_parameter" } })

    const wrongKey = await get("/v1/models", "nobody-at-all")
    expect([wrongKey.status, ...rateHeaders(wrongKey)]).toEqual([401, null, null])
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      const wrong = await get("/v1/models", "refused", { method })
      expect([wrong.status, wrong.headers.get("allow"), ...rateHeaders(wrong)]).toEqual([405, "GET, HEAD", null, null])
    }
    expect(rateHeaders(await get("/v1/models", "refused"))).toEqual(["240", "236"])
  })
})

test.each(lists)("HEAD %s has the headers of GET, counts as one call and sends no body", async (path) => {
  const who = path === "/v1/models" ? "header" : "compat-header"
  await gateway.apply({ accounts: [account(who)] })
  const answers: string[] = []
  for (const method of ["HEAD", "GET"]) {
    const client = await rawClient(Number(new URL(gateway.url).port))
    const head = [`x-api-key: ${keyOf(who)}`, "Connection: close"]
    client.send(rawHead(path, head, method))
    await client.ended
    answers.push(client.text())
  }
  const [head, get] = answers as [string, string]
  expect(head).toStartWith("HTTP/1.1 200 OK\r\n")
  expect(head.indexOf("\r\n\r\n")).toBe(head.length - 4)
  expect(linesOf(head)).toEqual(linesOf(get))
  expect([head, get].map((text) => /^x-ratelimit-remaining: (.*)\r$/im.exec(text)?.[1])).toEqual(["239", "238"])
})

/** The head's lines but for those that differ from one answer to the next. */
function linesOf(text: string): string[] {
  const lines = text.slice(0, text.indexOf("\r\n\r\n")).toLowerCase().split("\r\n")
  return lines.filter((line) => !/^((x-)?request-id|x-ratelimit-remaining|date):/.test(line)).sort()
}

test("a GET takes no slot, and none keeps it away", async () => {
  vendor.behave({ kind: "chat", chunks: 1000, gapMs: 20 })
  const headers = { authorization: `Bearer ${keyOf("busy")}`, "content-type": "application/json" }
  const ask = (): Promise<Response> =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers,
      body: JSON.stringify({ model: "gpt-9", messages: [], stream: true }),
    })
  const held = await ask()
  expect(held.status).toBe(200)
  expect((await ask()).status).toBe(429)
  for (const path of [...lists, "/v1/models/gpt-9"]) expect((await get(path, "busy")).status).toBe(200)
  await held.body!.cancel()
  await eventually(() => gateway.inFlight === 0)
  const [list, chat] = await Promise.all([get("/v1/models", "busy"), ask()])
  expect([list.status, chat.status]).toEqual([200, 200])
  await chat.body!.cancel()
})

test("a suspended account is refused with 403", async () => {
  await inTransaction(gateway.store, (trx) => suspendAccount(trx, "gone"))
  for (const path of lists) {
    const response = await get(path, "gone")
    expect(response.status).toBe(403)
    expect(await response.json()).toMatchObject({ error: { type: "permission_error", code: "account_suspended" } })
  }
})
