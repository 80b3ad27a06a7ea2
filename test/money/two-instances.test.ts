import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { startSimulator } from "../../simulator/simulator.ts"
import type { Price } from "../../src/core/price.ts"
import { inTransaction } from "../../src/store/db.ts"
import { postTopup } from "../../src/store/ledger.ts"
import { freshDatabase, slowStart } from "../store/engines.ts"
import { openShop, type Shop } from "../support/books.ts"
import { stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(60_000)
const simulator = await startSimulator()
beforeAll(async () => void (await freshDatabase("postgres")), slowStart)
afterAll(() => stopWithoutComplaint(simulator))

/** What one instance does counts at the others by then, also if they have had nothing to do meanwhile. */
const withinMs = 1000
const dollar = 1_000_000_000n

interface Pair extends AsyncDisposable {
  readonly here: Shop
  readonly there: Shop
}

async function openPair(balance: string, price: Price): Promise<Pair> {
  const { target: database } = await freshDatabase("postgres")
  const here = await openShop(simulator, { price, balance, database })
  const there = await openShop(simulator, { price, balance, database })
  // Both have written the upstream, so that the vendor of the second answers for either.
  await here.gateway.apply({})
  return {
    here,
    there,
    async [Symbol.asyncDispose]() {
      await here.gateway.stop()
      await there.gateway.stop()
    },
  }
}

test("an account that another instance has emptied is refused here within a second", async () => {
  await using pair = await openPair("1", { input: "1" })
  const { here, there } = pair
  const cheap = { kind: "chat", usage: { prompt_tokens: 1, completion_tokens: 0 } } as const
  there.vendor("a").behave(cheap)
  expect((await here.chat()).status).toBe(200)
  there.vendor("a").behave({ kind: "chat", usage: { prompt_tokens: 1_000_000, completion_tokens: 0 } })
  expect((await there.chat()).status).toBe(200)
  there.vendor("a").behave(cheap)
  // Where it was charged it counts at once.
  expect((await there.chat()).status).toBe(402)
  await Bun.sleep(withinMs)
  expect((await here.chat()).status).toBe(402)
})

test("an account that is topped up through another instance is admitted here within a second", async () => {
  await using pair = await openPair("1", { request: "1" })
  const { here, there } = pair
  expect((await here.chat()).status).toBe(200)
  expect((await here.chat()).status).toBe(402)
  await inTransaction(there.gateway.store, (trx) =>
    postTopup(trx, { account: "acme", amount: 5n * dollar, reference: "t-1", note: null }),
  )
  await Bun.sleep(withinMs)
  expect((await here.chat()).status).toBe(200)
})

test("two instances that charge one account at once lose nothing of it", async () => {
  await using pair = await openPair("10", { request: "0.004" })
  const { here, there } = pair
  const ask = async (shop: Shop): Promise<void> => {
    for (let n = 0; n < 20; n++) expect((await shop.chat({ stream: n % 2 === 0 })).status).toBe(200)
  }
  await Promise.all([here, there, here, there, here, there].map(ask))
  expect(await here.charges()).toHaveLength(120)
  expect(await here.balance()).toBe(10n * dollar - 120n * 4_000_000n)
})

test("what is charged over there counts here: together they spend no more than there was, but for those in flight", async () => {
  await using pair = await openPair("1", { request: "0.01" })
  const { here, there } = pair
  let isRefused = 0
  const spend = async (shop: Shop): Promise<void> => {
    for (;;) {
      const { status } = await shop.chat()
      if (status === 402) break
      expect(status).toBe(200)
    }
    isRefused += 1
  }
  await Promise.all([spend(here), spend(there)])
  expect(isRefused).toBe(2)
  // Each posting tells its instance the balance with the other's charges in it, so that at most a few were too many.
  const balance = await here.balance()
  expect(balance).toBeLessThanOrEqual(0n)
  expect(balance).toBeGreaterThan(-dollar / 20n)
})
