import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { sql } from "kysely"
import { startSimulator } from "../../simulator/simulator.ts"
import { type DatabaseTarget, inTransaction, openStore } from "../../src/store/db.ts"
import { engines, type FreshDatabase, freshDatabase, slowStart } from "../store/engines.ts"
import { openShop, type Shop } from "../support/books.ts"
import { expectError, readAnswer, stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(120_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

const cents04 = 4_000_000n
const dollar = 1_000_000_000n
const body = { messages: [{ role: "user", content: "hi" }] }

describe.each([...engines])("on %s", (engine) => {
  const databases: FreshDatabase[] = []
  const freshTarget = async (): Promise<DatabaseTarget> => {
    const fresh = await freshDatabase(engine)
    databases.push(fresh)
    return fresh.target
  }
  // The first one may have to wait for a server.
  beforeAll(async () => void (await freshTarget()), slowStart)
  afterAll(() => {
    for (const { remove } of databases) remove()
  })

  async function expectRefused(shop: Shop): Promise<void> {
    const before = shop.calls()
    const refused = await shop.chat()
    expectError(refused, 402, "billing_error", "insufficient_balance")
    expect(refused.headers.get("x-should-retry")).toBe("false")
    expect(shop.calls()).toEqual(before)
  }

  test.each(engine === "sqlite" ? [1, 16] : [16])(
    "2,500 calls of 0.004 dollar, %i at a time, use up 10 dollars exactly, and the next is refused",
    async (callers) => {
      await using shop = await openShop(simulator, {
        price: { request: "0.004" },
        balance: "10",
        database: await freshTarget(),
      })
      const vendor = shop.vendor("a")
      vendor.keepBodies = false
      const statuses: number[] = []
      const caller = async (): Promise<void> => {
        while (statuses.length < 2500) {
          const place = statuses.push(0) - 1
          const response = await shop.gateway.chat({ model: "m", ...body })
          await response.bytes()
          statuses[place] = response.status
        }
      }
      await Promise.all(Array.from({ length: callers }, caller))
      expect(new Set(statuses)).toEqual(new Set([200]))
      expect(await shop.balance()).toBe(0n)
      const charges = await shop.charges()
      expect(charges).toHaveLength(2500)
      expect(new Set(charges.map(({ amount }) => amount))).toEqual(new Set([-cents04]))
      expect(new Set(charges.map(({ reference }) => reference)).size).toBe(2500)
      await expectRefused(shop)
      expect(await shop.charges()).toHaveLength(2500)
    },
  )

  test("calls of many amounts at once lose no update: the balance is what was there less every charge", async () => {
    await using shop = await openShop(simulator, { balance: "10", database: await freshTarget() })
    const usages = Array.from({ length: 100 }, (_, n) => ({ prompt_tokens: n * 7 + 1, completion_tokens: n % 13 }))
    shop.vendor("a").behave(...usages.map((usage) => ({ kind: "chat", usage, gapMs: 0 }) as const))
    const answers = await Promise.all(
      usages.map(async (_, n) =>
        readAnswer(shop.gateway, await shop.gateway.chat({ model: "m", stream: n % 2 === 0, ...body })),
      ),
    )
    expect(answers.every(({ status }) => status === 200)).toBeTrue()
    const due = usages.reduce((sum, usage) => sum + usage.prompt_tokens * 1000 + usage.completion_tokens * 10_000, 0)
    expect(await shop.balance()).toBe(10n * dollar - BigInt(due))
    expect(await shop.charges()).toHaveLength(100)
  })

  test("the last admitted call may take the balance below zero, and then nobody is admitted", async () => {
    await using shop = await openShop(simulator, {
      price: { request: "3" },
      balance: "4",
      database: await freshTarget(),
    })
    expect((await shop.chat()).status).toBe(200)
    expect((await shop.chat({ stream: true })).status).toBe(200)
    expect(await shop.balance()).toBe(-2n * dollar)
    await expectRefused(shop)
  })

  test("own charges count at once: a second call right behind one that used everything up is refused", async () => {
    await using shop = await openShop(simulator, {
      price: { request: "4" },
      balance: "4",
      database: await freshTarget(),
    })
    const first = await shop.gateway.chat({ model: "m", stream: true, ...body })
    await first.bytes()
    const second = await shop.gateway.chat({ model: "m", ...body })
    expect(second.status).toBe(402)
    await second.bytes()
  })

  test("an instance that stops has left every charge and every request in the database", async () => {
    const database = await freshTarget()
    const shop = await openShop(simulator, { database })
    const ask = async () => {
      const response = await shop.gateway.chat({ model: "m", ...body })
      await response.bytes()
      return response.headers.get("x-request-id")!
    }
    const asked = (count: number) => Promise.all(Array.from({ length: count }, ask))
    shop.vendor("a").behave({ kind: "chat", usage: { prompt_tokens: 1000, completion_tokens: 0 } })
    const charged = await asked(60)
    // Refusals are put on record too: nobody waits for that, and here the database is slow to take them.
    const { promise: isHeld, resolve: held } = Promise.withResolvers<void>()
    const holding = inTransaction(shop.gateway.store, async (trx) => {
      if (engine === "postgres") await sql`lock table requests in exclusive mode`.execute(trx)
      held()
      await Bun.sleep(400)
    })
    await isHeld
    shop.vendor("a").behave({ kind: "status", status: 400 })
    const refused = await asked(30)
    await Promise.all([shop.gateway.stop(), holding])
    const store = await openStore(database)
    try {
      const lines = await store.db.selectFrom("ledger").selectAll().where("kind", "=", "charge").execute()
      expect(lines.map(({ reference }) => reference).sort()).toEqual(charged.toSorted())
      expect(lines.every(({ amount }) => amount === -1_000_000n)).toBeTrue()
      const rows = await store.db.selectFrom("requests").select("id").execute()
      expect(rows.map(({ id }) => id).sort()).toEqual([...charged, ...refused].toSorted())
    } finally {
      await store.close()
    }
  })
})
