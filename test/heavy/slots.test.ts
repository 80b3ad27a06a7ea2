import { expect, setDefaultTimeout, test } from "bun:test"
import type { AccountConfig, ConfigDocument } from "../../src/config/document.ts"
import { suspendAccount } from "../../src/store/accounts.ts"
import { inTransaction } from "../../src/store/db.ts"
import { bumpCatalogVersion } from "../../src/store/versions.ts"
import { eventually, model, startGateway, type TestGateway, testKey, upstream } from "../support/gateway.ts"
import { messages } from "../support/scene.ts"
import { acme, type GatedUpstream, gatedUpstream, plan, slotsHeld, untilHeld } from "../support/slots.ts"

setDefaultTimeout(60_000)

interface Stand extends AsyncDisposable {
  readonly gateway: TestGateway
  readonly vendor: GatedUpstream
  ask(stream?: boolean, key?: string): Promise<Asked>
}

interface Asked {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

async function stand(document: ConfigDocument): Promise<Stand> {
  const vendor = gatedUpstream()
  const gateway = await startGateway({
    upstreams: [upstream("a", vendor.baseUrl)],
    models: [model("m", ["a"])],
    ...document,
  })
  const asked: Promise<Asked>[] = []
  const send = async (stream: boolean, key: string): Promise<Asked> => {
    const headers = { authorization: `Bearer ${key}` }
    const response = await gateway.chat({ model: "m", ...(stream ? { stream } : {}), messages }, { headers })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  return {
    gateway,
    vendor,
    ask(stream = false, key = testKey) {
      const answer = send(stream, key)
      asked.push(answer)
      return answer
    },
    async [Symbol.asyncDispose]() {
      // A test that fails with requests open ends them here, or their end would be blamed on the next test.
      const releasing = setInterval(() => vendor.release(), 5)
      await Promise.allSettled(asked)
      clearInterval(releasing)
      await gateway.stop()
      vendor[Symbol.dispose]()
    },
  }
}

/** The refusal of the specification to the byte; only the request's id is its own. */
function expectRefusal({ status, headers, text }: Asked): void {
  const id = headers.get("x-request-id")
  expect(id).toMatch(/^req_[0-9a-f]{32}$/)
  expect(text).toBe(
    `{"error":{"type":"rate_limit_error","code":"concurrency_limit","message":"concurrency limit reached","request_id":"${id}"},"request_id":"${id}"}`,
  )
  expect(status).toBe(429)
  expect([...headers.keys()].filter((name) => name !== "date").sort()).toEqual([
    "content-length",
    "content-type",
    "x-request-id",
  ])
  expect(headers.get("content-type")).toBe("application/json")
}

function expectServed({ status, text }: Asked, stream: boolean): void {
  expect(status).toBe(200)
  expect(text).toContain(stream ? "data: [DONE]\n\n" : '"finish_reason":"stop"')
}

/** One more than the limit at once: all wait at the vendor but one, which is refused. */
async function round({ vendor, ask }: Stand, limit: number, number: number): Promise<void> {
  const before = vendor.calls
  let refused = 0
  const asks = Array.from({ length: limit + 1 }, async (_, position) => {
    const stream = (position + number) % 2 === 0
    const asked = await ask(stream)
    if (asked.status === 429) refused++
    return { stream, asked }
  })
  await eventually(() => vendor.waiting + refused === limit + 1)
  expect({ refused, atTheVendor: vendor.waiting }).toEqual({ refused: 1, atTheVendor: limit })
  vendor.release()
  const answers = await Promise.all(asks)
  expect(vendor.calls - before).toBe(limit)
  for (const { asked, stream } of answers) {
    if (asked.status === 429) expectRefusal(asked)
    else expectServed(asked, stream)
  }
}

test.each([
  [1, 400],
  [3, 300],
  [5, 300],
])("with a limit of %d exactly one more is refused, %d times in a row", async (limit, rounds) => {
  await using here = await stand({ plans: [plan(limit)], accounts: [acme(null)] })
  for (let number = 0; number < rounds; number++) await round(here, limit, number)
  expect(await slotsHeld(here.gateway)).toBe(0)
  const { stories } = here.gateway
  const count = (wanted: string) => stories.filter(({ ending }) => ending === wanted).length
  expect([stories.length, count("completed"), count("refused")]).toEqual([rounds * (limit + 1), rounds * limit, rounds])
})

/** How many of eight requests at once are let through. */
async function admitted({ vendor, ask }: Stand): Promise<number> {
  const crowd = 8
  let refused = 0
  const asks = Array.from({ length: crowd }, async (_, position) => {
    const asked = await ask(position % 2 === 0)
    if (asked.status === 429) refused++
  })
  await eventually(() => vendor.waiting + refused === crowd)
  const through = vendor.waiting
  vendor.release()
  await Promise.all(asks)
  return through
}

const everyone = 8
test.each([
  ["the account's own limit beats a lower one of the plan", 1, 3, 3],
  ["the account's own limit beats a higher one of the plan", 5, 2, 2],
  ["an account of its own limit 0 is unlimited, whatever the plan says", 1, 0, everyone],
  ["without a limit of its own the plan's counts", 2, null, 2],
  ["a plan of limit 0 is unlimited", 0, null, everyone],
  ["the account's own limit counts on an unlimited plan", 0, 1, 1],
] as const)("%s", async (_, planLimit, accountLimit, through) => {
  await using here = await stand({ plans: [plan(planLimit)], accounts: [acme(accountLimit)] })
  expect(await admitted(here)).toBe(through)
  expect(await slotsHeld(here.gateway)).toBe(0)
})

test("accounts do not share slots; the keys of one account do", async () => {
  const keys = ["sk-test-first-0123456789", "sk-test-second-0123456789", "sk-test-other-0123456789"] as const
  const account = (name: string, ...own: readonly string[]): AccountConfig => ({
    ...acme(null),
    name,
    keys: own.map((key, position) => ({ name: `k${position}`, key })),
  })
  await using here = await stand({
    plans: [plan(1)],
    accounts: [account("acme", keys[0], keys[1]), account("other", keys[2])],
  })
  const held = here.ask(true, keys[0])
  await eventually(() => here.vendor.waiting === 1)
  expectRefusal(await here.ask(false, keys[1]))
  const other = here.ask(false, keys[2])
  await eventually(() => here.vendor.waiting === 2)
  here.vendor.release()
  expectServed(await held, true)
  expectServed(await other, false)
})

test("a limit that is lowered while requests run refuses new ones until enough have ended", async () => {
  await using here = await stand({ plans: [plan(0)], accounts: [acme(3)] })
  const running = [here.ask(true), here.ask(false), here.ask(true)]
  await eventually(() => here.vendor.waiting === 3)
  await here.gateway.apply({ plans: [plan(0)], accounts: [acme(1)] })
  for (const left of [2, 1, 0]) {
    expectRefusal(await here.ask())
    here.vendor.release(1)
    await untilHeld(here.gateway, left)
  }
  for (const asked of await Promise.all(running)) expect(asked.status).toBe(200)
  expect(await admitted(here)).toBe(1)
})

test("a limit that is raised or taken away while requests run counts at once, and all slots go back", async () => {
  await using here = await stand({ plans: [plan(0)], accounts: [acme(1)] })
  const running = [here.ask(true)]
  await eventually(() => here.vendor.waiting === 1)
  expectRefusal(await here.ask())
  await here.gateway.apply({ accounts: [acme(2)] })
  running.push(here.ask(false))
  await eventually(() => here.vendor.waiting === 2)
  expectRefusal(await here.ask())
  await here.gateway.apply({ accounts: [acme(0)] })
  running.push(...Array.from({ length: 5 }, () => here.ask(true)))
  await eventually(() => here.vendor.waiting === 7)
  expect(await slotsHeld(here.gateway)).toBe(7)
  here.vendor.release()
  for (const asked of await Promise.all(running)) expect(asked.status).toBe(200)
  expect(await slotsHeld(here.gateway)).toBe(0)
})

test("a suspended account is refused before it takes a slot; what it had running ends and gives its slot back", async () => {
  await using here = await stand({ plans: [plan(2)], accounts: [acme(null)] })
  const running = here.ask(true)
  await eventually(() => here.vendor.waiting === 1)
  await inTransaction(here.gateway.store, async (trx) => {
    await suspendAccount(trx, "acme")
    await bumpCatalogVersion(trx)
  })
  await here.gateway.apply({})
  const refused = await here.ask()
  expect({ status: refused.status, error: JSON.parse(refused.text).error }).toMatchObject({
    status: 403,
    error: { type: "permission_error", code: "account_suspended" },
  })
  expect(await slotsHeld(here.gateway)).toBe(1)
  here.vendor.release()
  expectServed(await running, true)
  expect(await slotsHeld(here.gateway)).toBe(0)
  expect(here.vendor.calls).toBe(1)
})

test("reading takes no slot: model lists, health and paths that do not exist are served at the limit", async () => {
  await using here = await stand({ plans: [plan(1)], accounts: [acme(null)] })
  const held = here.ask(true)
  await eventually(() => here.vendor.waiting === 1)
  const headers = { authorization: `Bearer ${testKey}` }
  const statusOf = async (path: string, method = "GET"): Promise<number> =>
    (await fetch(here.gateway.url + path, { method, headers })).status
  expect(await statusOf("/v1/models")).toBe(200)
  expect(await statusOf("/compat/v1/models")).toBe(200)
  expect(await statusOf("/v1/models/m")).toBe(200)
  expect(await statusOf("/health")).toBe(200)
  expect(await statusOf("/v1/chat/completions")).toBe(405)
  expect(await statusOf("/v1/nothing", "POST")).toBe(404)
  expectRefusal(await here.ask())
  expect(await slotsHeld(here.gateway)).toBe(1)
  here.vendor.release()
  expectServed(await held, true)
})

test("all endpoints draw on the same slots", async () => {
  await using here = await stand({ plans: [plan(1)], accounts: [acme(null)] })
  const held = here.ask(true)
  await eventually(() => here.vendor.waiting === 1)
  const headers = { authorization: `Bearer ${testKey}`, "content-type": "application/json" }
  for (const path of ["chat/completions", "responses", "embeddings", "rerank", "images/generations", "audio/speech"]) {
    const body = JSON.stringify({ model: "m", input: "x", prompt: "x" })
    const response = await fetch(`${here.gateway.url}/v1/${path}`, { method: "POST", headers, body })
    // The vendor has no rerank, so that the model is not there to be limited.
    if (path === "rerank") expect(response.status).toBe(404)
    else expectRefusal({ status: response.status, headers: response.headers, text: await response.text() })
  }
  const form = new FormData()
  form.set("model", "m")
  form.set("file", new Blob(["sound"]), "a.wav")
  const sent = { method: "POST", headers: { authorization: headers.authorization }, body: form }
  for (const path of ["audio/transcriptions", "audio/translations", "images/edits", "images/variations"]) {
    const response = await fetch(`${here.gateway.url}/v1/${path}`, sent)
    expectRefusal({ status: response.status, headers: response.headers, text: await response.text() })
  }
  expect(here.vendor.calls).toBe(1)
  here.vendor.release()
  expectServed(await held, true)
})
