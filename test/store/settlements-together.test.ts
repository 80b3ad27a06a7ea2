import { afterAll, beforeAll, expect, test } from "bun:test"
import type { RequestRecord } from "../../src/core/request-record.ts"
import { type DatabaseTarget, inTransaction, openStore, type Store } from "../../src/store/db.ts"
import { isDuplicate } from "../../src/store/errors.ts"
import { balanceOf, postTopup } from "../../src/store/ledger.ts"
import { allLines } from "../../src/store/reconcile-reads.ts"
import { postSettlements } from "../../src/store/settlements.ts"
import { freshDatabase, giveAccount, slowStart } from "./engines.ts"
import { postElsewhere } from "./processes.ts"
import { idOf, requestRecord } from "./records.ts"

let target: DatabaseTarget
let one: Store
let two: Store
const names = ["a", "b", "c", "d", "e"]
let ids: readonly string[] = []
beforeAll(async () => {
  target = (await freshDatabase("postgres")).target
  one = await openStore(target, { poolSize: 4 })
  two = await openStore(target, { poolSize: 4 })
  for (const name of names) await giveAccount(one, name)
  ids = await Promise.all(names.map((name) => idOf(one, name)))
}, slowStart)
afterAll(async () => {
  await one.close()
  await two.close()
})

/** A batch that touches all accounts in an order of its own. */
function batchOf(seed: number, size: number): readonly RequestRecord[] {
  return Array.from({ length: size }, (_, n) =>
    requestRecord(ids[(seed * 3 + n * (seed % 2 === 0 ? 1 : 4)) % ids.length]!, {
      charge: BigInt((seed * size + n) % 7),
      model: `m-${n % 3}`,
    }),
  )
}

async function expectExact(posted: readonly RequestRecord[], topups: bigint): Promise<void> {
  const lines = await Array.fromAsync(allLines(one.db))
  for (const id of ids) {
    const own = lines.filter(({ accountId }) => accountId === id)
    let balance = 0n
    for (const line of own) {
      balance += line.amount
      expect(line.balanceAfter).toBe(balance)
    }
    expect(await balanceOf(one.db, id)).toBe(balance)
  }
  const charges = posted.reduce((sum, { charge }) => sum + charge, 0n)
  expect(lines.reduce((sum, { amount }) => sum + amount, 0n)).toBe(topups - charges)
  const rows = await one.db.selectFrom("usage_hours").selectAll().execute()
  expect(rows.reduce((sum, { charge }) => sum + charge, 0n)).toBe(charges)
  expect(rows.reduce((sum, { requests }) => sum + requests, 0n)).toBe(BigInt(posted.length))
}

test("instances posting for the same accounts at once: balances and roll-ups exact, nobody waits in a ring", async () => {
  const batches = Array.from({ length: 40 }, (_, seed) => batchOf(seed, 25))
  const other = postElsewhere(target, ids, 40)
  await Promise.all([
    ...batches.map((batch, n) => postSettlements(n % 2 === 0 ? one : two, batch, { mayBeKnown: n % 3 === 0 })),
    ...names.map((account, n) =>
      inTransaction(two, (trx) => postTopup(trx, { account, amount: 1000n, reference: `t-${n}`, note: null })),
    ),
  ])
  await expectExact([...batches.flat(), ...(await other)], 5000n)
}, 30_000)

test("one batch posted by two at once: exactly one of them writes it", async () => {
  const batch = batchOf(1, 30)
  const known = await Promise.all([one, two].map((store) => postSettlements(store, batch, { mayBeKnown: true })))
  expect(known[0]!.balances).toEqual(known[1]!.balances)
  const unknown = batchOf(2, 30)
  const outcomes = await Promise.allSettled(
    [one, two].map((store) => postSettlements(store, unknown, { mayBeKnown: false })),
  )
  const refused = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []))
  expect(refused.map(isDuplicate)).toEqual([true])
  const { count } = one.db.fn
  for (const records of [batch, unknown]) {
    const references = records.map((record) => record.id)
    const row = await one.db
      .selectFrom("ledger")
      .select(count<bigint>("id").as("lines"))
      .where("reference", "in", references)
      .executeTakeFirstOrThrow()
    expect(row.lines).toBe(BigInt(records.filter(({ charge }) => charge > 0n).length))
  }
})
