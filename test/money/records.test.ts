import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import type { RequestRecord } from "../../src/core/request-record.ts"
import { allRequests, allUsage } from "../../src/store/reconcile-reads.ts"
import { rollUp, spanMs, type UsageSpan } from "../../src/store/rollup.ts"
import { engines, type FreshDatabase, freshDatabase, slowStart } from "../store/engines.ts"
import { comes, expectCharged, expectNotCharged, openShop } from "../support/books.ts"
import { endpointSamples, postTo } from "../support/endpoints.ts"
import { eventually } from "../support/gateway.ts"
import { readAnswer, stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(60_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

describe.each([...engines])("on %s", (engine) => {
  let database: FreshDatabase
  beforeAll(async () => {
    database = await freshDatabase(engine)
  }, slowStart)
  afterAll(() => database.remove())

  test("a request's row tells each attempt, why it was made, how long it took, and what it came to", async () => {
    const own = await freshDatabase(engine)
    await using shop = await openShop(simulator, { database: own.target, upstreams: { a: {}, b: {} } })
    shop.vendor("a").behave({ kind: "status", status: 500, body: "out of order" })
    shop.vendor("b").behave({
      kind: "chat",
      firstTokenDelayMs: 60,
      usage: { prompt_tokens: 5, completion_tokens: 2 },
    })
    const began = Date.now()
    const answer = await shop.chat({ stream: true })
    await expectCharged(shop, answer, 25_000n)
    const { row } = await shop.entryOf(answer)
    expect(row).toMatchObject({
      id: answer.headers.get("x-request-id")!,
      account: "acme",
      keyName: "test",
      endpoint: "chat",
      model: "m",
      upstream: "b",
      upstreamModel: "m-upstream",
      stream: true,
      status: 200,
      error: null,
      ending: "completed",
      line: { amount: -25_000n, balanceAfter: 99_999_975_000n },
    })
    expect(row.attempts.map(({ upstream, why, outcome, status }) => ({ upstream, why, outcome, status }))).toEqual([
      { upstream: "a", why: "first", outcome: "status", status: 500 },
      { upstream: "a", why: expect.any(String), outcome: "status", status: 500 },
      { upstream: "b", why: expect.any(String), outcome: "answered", status: 200 },
    ])
    expect(row.attempts[0]!.detail).toContain("out of order")
    for (const [index, { startedAt, endedAt }] of row.attempts.entries()) {
      expect(endedAt!).toBeGreaterThanOrEqual(startedAt)
      expect(startedAt).toBeGreaterThanOrEqual(row.attempts[index - 1]?.endedAt ?? 0)
    }
    expect(row.firstTokenMs!).toBeGreaterThanOrEqual(Math.floor(row.attempts[2]!.startedAt) + 50)
    expect(row.durationMs).toBeGreaterThanOrEqual(row.firstTokenMs!)
    expect(row.startedAt).toBeGreaterThanOrEqual(began - 5)
    expect(row.endedAt - row.startedAt).toBe(row.durationMs)
    expect(row.endedAt).toBeLessThanOrEqual(Date.now())
    own.remove()
  })

  test("there is one row for each request, whatever became of it, and roll-ups are the sum of the rows", async () => {
    await using shop = await openShop(simulator, {
      database: database.target,
      balance: "1",
      concurrency: 1,
      price: { input: "1", output: "10", image: "0.02", second: "0.001", character: "0.0001" },
    })
    const ids = new Set<string>()
    const noted = async (response: Response): Promise<number> => {
      ids.add((await readAnswer(shop.gateway, response)).story.requestId)
      return response.status
    }
    for (const { path, request } of Object.values(endpointSamples)) {
      shop.vendor("a").behave({ kind: "chat" })
      expect(await noted(await postTo(shop.gateway, path, request("m")))).toBe(200)
      shop.vendor("a").behave({ kind: "status", status: 400 })
      expect(await noted(await postTo(shop.gateway, path, request("m")))).toBe(400)
    }
    shop.vendor("a").behave({ kind: "chat", headDelayMs: 300 })
    const slow = shop.chat()
    await eventually(() => shop.vendor("a").openCalls() === 1)
    const crowded = await shop.chat()
    expect(crowded.status).toBe(429)
    ids.add(crowded.story.requestId).add((await slow).story.requestId)
    const expensive = { prompt_tokens: 1_000_000, completion_tokens: 0 }
    shop.vendor("a").behave({ kind: "chat", usage: expensive })
    ids.add((await shop.chat()).story.requestId)
    const refused = await shop.chat({ stream: true })
    expect(refused.status).toBe(402)
    ids.add(refused.story.requestId)

    expect(await expectNotCharged(shop, crowded)).toMatchObject({
      status: 429,
      error: "concurrency_limit",
      ending: "refused",
      attempts: [],
      upstream: null,
    })
    expect(await expectNotCharged(shop, refused)).toMatchObject({
      status: 402,
      error: "insufficient_balance",
      ending: "refused",
      stream: true,
      attempts: [],
    })
    const rows = await comes(async () => {
      const found = await Array.fromAsync(allRequests(shop.gateway.store.db))
      return found.length >= ids.size && found
    })
    expect(rows.map(({ id }) => id).sort()).toEqual([...ids].sort())

    for (const span of ["hour", "day"] as const) await expectRollUp(span, rows)
    const charged = rows.reduce((sum, { charge }) => sum + charge, 0n)
    expect(await shop.balance()).toBe(1_000_000_000n - charged)
    expect(await shop.charges()).toHaveLength(rows.filter(({ charge }) => charge > 0n).length)

    async function expectRollUp(span: UsageSpan, records: readonly RequestRecord[]): Promise<void> {
      const stored = await Array.fromAsync(allUsage(shop.gateway.store.db, span))
      const due = rollUp(span, records).map(({ time, accountId, model, upstream, counts, charge }) => ({
        place: { time, accountId, model, upstream },
        sums: { ...Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, BigInt(count)])), charge },
      }))
      const found = stored.map(({ sums, ...place }) => ({ place, sums }))
      const byPlace = (one: (typeof due)[number]): string => JSON.stringify(one.place)
      const inOrder = (all: readonly (typeof due)[number][]) =>
        all.toSorted((a, b) => byPlace(a).localeCompare(byPlace(b)))
      expect(inOrder(found)).toEqual(inOrder(due))
      expect(stored.reduce((sum, { sums }) => sum + sums.requests, 0n)).toBe(BigInt(ids.size))
      expect(stored.every(({ time }) => time === Math.floor(Date.now() / spanMs[span]) || time > 0)).toBeTrue()
    }
  })
})
