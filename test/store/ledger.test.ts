import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { sql } from "kysely"
import { inTransaction, type Store } from "../../src/store/db.ts"
import { StoreConflict } from "../../src/store/errors.ts"
import { findKey, saveKey } from "../../src/store/keys.ts"
import { balanceOf, largestAmount, postTopup, smallestAmount } from "../../src/store/ledger.ts"
import { engines, type FreshStore, freshStore, giveAccount, slowStart } from "./engines.ts"

async function idOf(store: Store, name: string): Promise<string> {
  return (await store.db.selectFrom("accounts").select("id").where("name", "=", name).executeTakeFirstOrThrow()).id
}

describe.each([...engines])("ledger on %s", (engine) => {
  let fresh: FreshStore
  beforeAll(async () => {
    fresh = await freshStore(engine)
    for (const name of ["payer", "other", "rich", "busy"]) await giveAccount(fresh.store, name)
  }, slowStart)
  afterAll(() => fresh.close())
  const topup = (account: string, amount: bigint, reference: string) =>
    inTransaction(fresh.store, (trx) => postTopup(trx, { account, amount, reference, note: "test" }))

  test("a top-up posts once per reference, with the balance after it", async () => {
    const id = await idOf(fresh.store, "payer")
    expect(await balanceOf(fresh.store.db, id)).toBe(0n)
    expect(await topup("payer", 100n, "r1")).toEqual({ posted: true, balanceAfter: 100n })
    expect(await topup("payer", 11n, "r2")).toEqual({ posted: true, balanceAfter: 111n })
    expect(await topup("payer", 100n, "r1")).toEqual({ posted: false, balanceAfter: 100n })
    expect(await balanceOf(fresh.store.db, id)).toBe(111n)
    const lines = await fresh.store.db.selectFrom("ledger").selectAll().where("account_id", "=", id).execute()
    expect(lines).toHaveLength(2)
    expect(lines[0]).toMatchObject({ kind: "topup", note: "test", measured: null, estimated: 0n })
  })

  test("a reference of another account is refused, an unknown account too", async () => {
    await topup("payer", 1n, "taken")
    await expect(topup("other", 1n, "taken")).rejects.toThrow(StoreConflict)
    await expect(topup("other", 1n, "taken")).rejects.toThrow('the reference "taken" is already used')
    await expect(topup("nobody", 1n, "r9")).rejects.toThrow('account "nobody" does not exist')
  })

  test("amounts near 2^63 come back exactly, and what does not fit is refused", async () => {
    await inTransaction(fresh.store, (trx) =>
      saveKey(trx, { account: "rich", name: "k", digest: "rich-key", prefix: "p", lastFour: "f" }),
    )
    const id = await idOf(fresh.store, "rich")
    for (const [amount, balance, reference] of [
      [largestAmount - 1n, largestAmount - 1n, "big-1"],
      [1n, largestAmount, "big-2"],
      [-largestAmount, 0n, "big-3"],
      [smallestAmount, smallestAmount, "big-4"],
    ] as const) {
      expect(await topup("rich", amount, reference)).toEqual({ posted: true, balanceAfter: balance })
      expect(await balanceOf(fresh.store.db, id)).toBe(balance)
      expect((await findKey(fresh.store.db, "rich-key"))?.balance).toBe(balance)
      const line = await fresh.store.db
        .selectFrom("ledger")
        .select(["amount", "balance_after"])
        .where("reference", "=", reference)
        .executeTakeFirst()
      expect(line).toEqual({ amount, balance_after: balance })
      expect(await topup("rich", amount, reference)).toEqual({ posted: false, balanceAfter: balance })
    }
    await expect(topup("rich", -1n, "big-5")).rejects.toThrow(/beyond what can be kept/)
    await expect(topup("rich", 2n ** 64n, "big-6")).rejects.toThrow(/beyond what can be kept/)
  })

  test("many at once: every line follows the one before, nothing is lost, doubles post once", async () => {
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, n) => topup("busy", BigInt(n + 1), `busy-${n % 20}`)),
    )
    expect(results.filter((result) => result.posted)).toHaveLength(20)
    const lines = await fresh.store.db
      .selectFrom("ledger")
      .select(["amount", "balance_after"])
      .where("account_id", "=", await idOf(fresh.store, "busy"))
      .orderBy("id")
      .execute()
    let sum = 0n
    for (const line of lines) {
      sum += line.amount
      expect(line.balance_after).toBe(sum)
    }
    expect(lines).toHaveLength(20)
  })

  test("the database refuses to change or delete lines, whoever asks", async () => {
    await topup("payer", 5n, "kept")
    const attempts = [
      "update ledger set amount = 1 where reference = 'kept'",
      "update ledger set note = 'x'",
      "delete from ledger where reference = 'kept'",
      "delete from ledger",
      engine === "postgres"
        ? "truncate ledger"
        : `insert or replace into ledger (account_id, kind, amount, balance_after, reference, created_at)
           select account_id, kind, 0, 0, reference, 0 from ledger where reference = 'kept'`,
    ]
    const before = await fresh.store.db.selectFrom("ledger").selectAll().orderBy("id").execute()
    for (const attempt of attempts) {
      await expect(sql.raw(attempt).execute(fresh.store.db)).rejects.toThrow("the ledger is append-only")
    }
    expect(await fresh.store.db.selectFrom("ledger").selectAll().orderBy("id").execute()).toEqual(before)
  })

  test("the database refuses lines of no account, of an unknown kind, or with a reference used before", async () => {
    const id = await idOf(fresh.store, "payer")
    await topup("payer", 5n, "unique")
    const line = (account: string, kind: string, reference: string) =>
      sql`insert into ledger (account_id, kind, amount, balance_after, reference, created_at)
        values (${account}, ${kind}, 1, 1, ${reference}, 0)`.execute(fresh.store.db)
    await expect(line("nobody", "topup", "n1")).rejects.toThrow(/foreign key/i)
    await expect(line(id, "gift", "n2")).rejects.toThrow(/check constraint/i)
    await expect(line(id, "topup", "unique")).rejects.toThrow(/unique/i)
  })
})
