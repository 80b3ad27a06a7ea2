import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { comes, expectCharged, expectNotCharged, openShop, type Shop, tokenPrice } from "../support/books.ts"
import { eventually, headerOf } from "../support/gateway.ts"
import {
  askMessages,
  countPath,
  messageOf,
  messagesPath,
  modes,
  postMessages,
  saying,
  vendorFor,
  type Way,
  ways,
  waysAndModes,
} from "../support/messages-scene.ts"
import { stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

/** 45 tokens read, 30 of them from the cache and 5 written to it, 8 made: as each dialect tells it. */
const usages = {
  native: { input_tokens: 10, cache_read_input_tokens: 30, cache_creation_input_tokens: 5, output_tokens: 8 },
  bridged: {
    prompt_tokens: 45,
    completion_tokens: 8,
    total_tokens: 53,
    prompt_tokens_details: { cached_tokens: 30, cache_write_tokens: 5 },
  },
} as const
const due = 10n * 1000n + 30n * 100n + 5n * 1250n + 8n * 10_000n

type Usage = Extract<Behaviour, { kind: "messages" }>["usage"]

function telling(way: Way, usage: NonNullable<Usage>, more: object = {}): Behaviour {
  const said = { text: "one two three", gapMs: 1, usage, ...more }
  return way === "native" ? { kind: "messages", ...said } : { kind: "chat", ...said }
}

function shopOver(way: Way, more: Parameters<typeof openShop>[1] = {}): Promise<Shop> {
  return openShop(simulator, { price: tokenPrice, upstreams: { a: vendorFor[way] }, ...more })
}

test.each(waysAndModes)("%s, %s: one line with the same cost", async (way, _, stream) => {
  await using shop = await shopOver(way)
  shop.vendor("a").behave(telling(way, usages[way]))
  const answer = await askMessages(shop, { stream })
  const line = await expectCharged(shop, answer, due)
  expect(line.estimated).toBeFalse()
  expect(line.measured?.measured.tokens).toMatchObject({ input: 45, cachedInput: 30, cacheWrite: 5, output: 8 })
  expect(await shop.balance()).toBe(100_000_000_000n - due)
})

test.each(waysAndModes)(
  "%s, %s: usage that is missing or makes no sense is counted and marked",
  async (way, _, stream) => {
    await using shop = await shopOver(way)
    const invalid = {
      native: { input_tokens: -1, output_tokens: "8" },
      bridged: { prompt_tokens: -1, completion_tokens: 8 },
    }
    for (const [usage, usageInvalid] of [
      ["none", false],
      [invalid[way], true],
    ] as const) {
      shop.vendor("a").behave(telling(way, usage))
      const answer = await askMessages(shop, { stream })
      const { input, output } = answer.story.usage!
      expect(input).toBeGreaterThan(0)
      expect(output).toBeGreaterThan(0)
      const line = await expectCharged(shop, answer, BigInt(input) * 1000n + BigInt(output) * 10_000n)
      expect(line).toMatchObject({ estimated: true, usageInvalid })
      // What the caller is told is what it pays for.
      if (way === "bridged")
        expect(messageOf(answer, stream).usage).toMatchObject({ input_tokens: input, output_tokens: output })
    }
  },
)

test.each(waysAndModes)("%s, %s: refusals and failures cost nothing", async (way, _, stream) => {
  await using shop = await shopOver(way)
  for (const status of [400, 429, 500, 529]) {
    shop.vendor("a").behave({ kind: "status", status })
    await expectNotCharged(shop, await askMessages(shop, { stream }))
  }
  expect(await shop.charges()).toEqual([])
})

describe.each(ways)("the client leaves, %s", (way) => {
  test("in mid-stream: what was produced is charged by count, once", async () => {
    await using shop = await shopOver(way)
    const cut = { afterEvents: way === "native" ? 5 : 3, how: "stall" } as const
    shop.vendor("a").behave(telling(way, usages[way], { cut }))
    const leaving = new AbortController()
    const response = await postMessages(shop.gateway, { stream: true }, { signal: leaving.signal })
    const reader = response.body!.getReader()
    await reader.read()
    leaving.abort()
    await eventually(() => shop.vendor("a").calls[0]!.closedByPeer, 1000)
    const story = await shop.gateway.story(response)
    expect(story).toMatchObject({ ending: "client_gone", estimated: true })
    expect(story.usage!.output).toBeGreaterThan(0)
    await expectCharged(shop, { story }, story.charge)
    expect(story.charge).toBeGreaterThan(0n)
  })

  test("not streamed: the answer is read to its end and charged", async () => {
    await using shop = await shopOver(way)
    shop.vendor("a").behave(telling(way, usages[way], { headDelayMs: 300 }))
    const leaving = new AbortController()
    const gone = postMessages(shop.gateway, {}, { signal: leaving.signal })
    await eventually(() => shop.vendor("a").calls.length === 1)
    leaving.abort()
    await gone.catch(() => {})
    const [line] = await comes(async () => {
      const lines = await shop.charges()
      return lines.length > 0 && lines
    })
    expect(line).toMatchObject({ amount: -due, estimated: false })
  })
})

test.each(modes)(
  "from a native upstream to a bridged one, %s: one line, of the one that answered",
  async (_, stream) => {
    await using shop = await openShop(simulator, {
      price: tokenPrice,
      upstreams: { a: vendorFor.native, b: vendorFor.bridged },
    })
    shop.vendor("a").behave({ kind: "status", status: 529 })
    shop.vendor("b").behave(telling("bridged", usages.bridged))
    const answer = await askMessages(shop, { stream })
    await expectCharged(shop, answer, due)
    expect(await shop.charges()).toHaveLength(1)
    const { row } = await shop.entryOf(answer)
    expect([row.upstream, row.attempts.length]).toEqual(["b", 3])
  },
)

test("spent is spent: the last request may go below zero, the next is 402", async () => {
  await using shop = await shopOver("bridged", { balance: "0.00001" })
  shop.vendor("a").behave(telling("bridged", usages.bridged))
  await expectCharged(shop, await askMessages(shop, { stream: true }), due)
  const refused = await askMessages(shop)
  expect([refused.status, JSON.parse(refused.text).error.code]).toEqual([402, "insufficient_balance"])
  expect(shop.calls()).toEqual([1])
})

test.each(ways)(
  "draining, %s: the stream in flight comes to its end and is charged, a new one is turned away",
  async (way) => {
    await using shop = await shopOver(way)
    shop.vendor("a").behave(telling(way, usages[way], { gapMs: 60 }))
    const response = await postMessages(shop.gateway, { stream: true })
    const drained = shop.gateway.drain()
    const late = await postMessages(shop.gateway)
    expect([late.status, await late.text()]).toEqual([503, '{"error":"instance draining"}'])
    expect(await response.text()).toEndWith('event: message_stop\ndata: {"type":"message_stop"}\n\n')
    await drained
    await expectCharged(shop, { story: await shop.gateway.story(response) }, due)
  },
)

describe("count_tokens", () => {
  const long = { messages: [{ role: "user", content: "many words ".repeat(200) }] }
  const count = async (shop: Shop, body: object = {}, headers: Record<string, string> = {}) =>
    askMessages(shop, body, { path: `${countPath}?beta=true`, headers })

  test.each(ways)("%s: more input is a larger number, and nothing is charged", async (way) => {
    await using shop = await shopOver(way)
    const short = await count(shop)
    const larger = await count(shop, { ...long, system: "Be kind.", tools: [{ name: "f", input_schema: {} }] })
    const [few, many] = [short, larger].map(({ text }) => JSON.parse(text).input_tokens as number)
    expect(Object.keys(JSON.parse(short.text))).toEqual(["input_tokens"])
    expect(few).toBeGreaterThan(0)
    expect(many).toBeGreaterThan(few! + 100)
    for (const answer of [short, larger]) {
      expect(answer.status).toBe(200)
      expect(answer.headers.get("content-type")).toStartWith("application/json")
      expect(answer.headers.get("request-id")).toBe(answer.headers.get("x-request-id"))
      expect(answer.story).toMatchObject({ ending: "completed", waived: true })
      await expectNotCharged(shop, answer)
    }
    expect(await shop.balance()).toBe(100_000_000_000n)
    expect(shop.calls()).toEqual([way === "native" ? 2 : 0])
  })

  test("native: asked as it came, with the query and the headers; the answer's bytes are the vendor's", async () => {
    await using shop = await shopOver("native")
    const body = '{"input_tokens" : 2095, "odd":1.0}\n'
    shop.vendor("a").behave({ kind: "status", status: 200, body })
    const answer = await count(shop, { top_k: 5 }, { "anthropic-beta": "token-counting-2024-11-01" })
    expect(answer.text).toBe(body)
    const [call] = shop.vendor("a").calls
    expect(call!.path).toEndWith("/v1/messages/count_tokens?beta=true")
    expect(headerOf(call!, "anthropic-beta")).toBe("token-counting-2024-11-01")
    expect(JSON.parse(Buffer.from(call!.body).toString())).toMatchObject({ model: "m-upstream", top_k: 5 })
    await expectNotCharged(shop, answer)
  })

  test("a native upstream that fails, a bridged one behind it: counted here", async () => {
    await using shop = await openShop(simulator, { upstreams: { a: vendorFor.native, b: vendorFor.bridged } })
    for (const status of [404, 500]) {
      shop.vendor("a").behave({ kind: "status", status })
      const answer = await count(shop)
      expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { input_tokens: expect.any(Number) }])
      await expectNotCharged(shop, answer)
    }
    shop.vendor("a").behave({ kind: "status", status: 400 })
    expect((await count(shop)).status).toBe(400)
    expect(shop.calls()).toEqual([4, 0])
  })

  test("a bridged upstream first: counted here, though a native one could be asked", async () => {
    await using shop = await openShop(simulator, { upstreams: { a: vendorFor.bridged, b: vendorFor.native } })
    expect((await count(shop)).status).toBe(200)
    expect(shop.calls()).toEqual([0, 0])
  })

  test("what the vendor refuses is the caller's to read", async () => {
    await using shop = await shopOver("native")
    const body = '{"type":"error","error":{"type":"not_found_error","message":"no counting here"},"request_id":"req_1"}'
    shop.vendor("a").behave({ kind: "status", status: 404, body })
    const answer = await count(shop)
    expect([answer.status, answer.text, answer.headers.get("request-id")]).toEqual([404, body, "req_1"])
  })

  test("a free slot is needed as for any other POST, and it comes back", async () => {
    await using shop = await shopOver("bridged", { concurrency: 1 })
    for (let time = 0; time < 3; time++) expect((await count(shop)).status).toBe(200)
    shop.vendor("a").behave(saying("bridged", { text: "x" }))
    expect((await askMessages(shop, {}, { path: messagesPath })).status).toBe(200)
  })
})
