import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { sql } from "kysely"
import { inTransaction } from "../../src/store/db.ts"
import { StoreConflict } from "../../src/store/errors.ts"
import {
  balanceOf,
  balancesOf,
  largestAmount,
  listLedgerBefore,
  postAdjustment,
  postTopup,
  smallestAmount,
} from "../../src/store/ledger.ts"
import { postSettlements } from "../../src/store/settlements.ts"
import { engines, type FreshStore, freshStore, giveAccount, slowStart } from "./engines.ts"
import { idOf, requestRecord } from "./records.ts"

describe.each([...engines])("ledger on %s", (engine) => {
  let fresh: FreshStore
  beforeAll(async () => {
    fresh = await freshStore(engine)
    for (const name of ["payer", "other", "rich", "busy"]) await giveAccount(fresh.store, name)
  }, slowStart)
  afterAll(() => fresh.close())
  const topup = (account: string, amount: bigint, reference: string) =>
    inTransaction(fresh.store, (trx) => postTopup(trx, { account, amount, reference, note: "test" }))
  const adjust = (account: string, amount: bigint, reference: string, note = "test") =>
    inTransaction(fresh.store, (trx) => postAdjustment(trx, { account, amount, reference, note }))

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
    const id = await idOf(fresh.store, "rich")
    for (const [amount, balance, reference] of [
      [largestAmount - 1n, largestAmount - 1n, "big-1"],
      [1n, largestAmount, "big-2"],
      [-largestAmount, 0n, "big-3"],
      [smallestAmount, smallestAmount, "big-4"],
    ] as const) {
      expect(await adjust("rich", amount, reference)).toEqual({ posted: true, balanceAfter: balance })
      expect(await balanceOf(fresh.store.db, id)).toBe(balance)
      expect(await balancesOf(fresh.store.db, [id])).toEqual(new Map([[id, balance]]))
      const line = await fresh.store.db
        .selectFrom("ledger")
        .select(["amount", "balance_after"])
        .where("reference", "=", reference)
        .executeTakeFirst()
      expect(line).toEqual({ amount, balance_after: balance })
      expect(await adjust("rich", amount, reference)).toEqual({ posted: false, balanceAfter: balance })
    }
    await expect(adjust("rich", -1n, "big-5")).rejects.toThrow(/beyond what can be kept/)
    await expect(topup("rich", 2n ** 64n, "big-6")).rejects.toThrow(/beyond what can be kept/)
  })

  test("many at once: every line follows the one before, nothing is lost, doubles post once", async () => {
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, n) => topup("busy", BigInt((n % 20) + 1), `busy-${n % 20}`)),
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
      "update ledger set price = '{}', usage_invalid = 1",
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

  test("a reference of another kind or amount is refused, and says why", async () => {
    await topup("payer", 3n, "once")
    await expect(topup("payer", 4n, "once")).rejects.toThrow(
      'the reference "once" is already used by a ledger line of another amount (3)',
    )
    await expect(adjust("payer", 3n, "once")).rejects.toThrow(
      'the reference "once" is already used by a ledger line that is a top-up',
    )
    const record = requestRecord(await idOf(fresh.store, "payer"), { id: "not-of-our-making", charge: 1n })
    await postSettlements(fresh.store, [record], { mayBeKnown: false })
    await expect(topup("payer", 1n, record.id)).rejects.toThrow("that is a charge")
  })

  test("a request's id is no reference for lines by hand: it would keep the charge out", async () => {
    const { id } = requestRecord("anyone")
    await expect(adjust("payer", 1n, id)).rejects.toThrow(`use another, such as "refund:${id}"`)
    expect((await adjust("payer", 1n, `refund:${id}`)).posted).toBe(true)
  })

  test("top-ups add; adjustments go either way, but not nowhere, and say what for", async () => {
    await expect(topup("payer", 0n, "z1")).rejects.toThrow("a top-up must be above zero (got 0)")
    await expect(topup("payer", -1n, "z2")).rejects.toThrow("a top-up must be above zero (got -1)")
    await expect(adjust("payer", 0n, "z3")).rejects.toThrow("an adjustment must not be zero")
    await expect(adjust("payer", 1n, "z4", " ")).rejects.toThrow("needs a note")
    const before = await balanceOf(fresh.store.db, await idOf(fresh.store, "payer"))
    expect((await adjust("payer", -7n, "z5", "wrong price")).balanceAfter).toBe(before - 7n)
    const [line] = await listLedgerBefore(fresh.store.db, { before: null, limit: 1, reference: "z5" })
    expect(line).toMatchObject({ kind: "adjustment", amount: -7n, note: "wrong price", account: "payer" })
  })

  test("balances of many accounts at once: those without lines have nothing, unknown ones are left out", async () => {
    const [payer, other] = [await idOf(fresh.store, "payer"), await idOf(fresh.store, "other")]
    const balances = await balancesOf(fresh.store.db, [payer, other, "nobody"])
    expect(balances).toEqual(
      new Map([
        [payer, await balanceOf(fresh.store.db, payer)],
        [other, 0n],
      ]),
    )
    expect(await balancesOf(fresh.store.db, [])).toEqual(new Map())
  })

  test("lines are listed newest first, page by page, by every filter", async () => {
    await giveAccount(fresh.store, "listed")
    const account = await idOf(fresh.store, "listed")
    await topup("listed", 100n, "l-1")
    const charges = [1, 2, 3, 4].map((n) => requestRecord(account, { charge: BigInt(n), endedAt: n * 1000 }))
    await postSettlements(fresh.store, charges, { mayBeKnown: false })
    await adjust("listed", -5n, "l-2")
    const list = (ask: Partial<Parameters<typeof listLedgerBefore>[1]>) =>
      listLedgerBefore(fresh.store.db, { before: null, limit: 10, account, ...ask })
    const all = await list({})
    expect(all.map(({ amount }) => amount)).toEqual([-5n, -4n, -3n, -2n, -1n, 100n])
    expect(all.map(({ balanceAfter }) => balanceAfter)).toEqual([85n, 90n, 94n, 97n, 99n, 100n])
    const pages = [await list({ limit: 4 })]
    pages.push(await list({ limit: 4, before: pages[0]!.at(-1)!.id }))
    expect(pages.flat()).toEqual([...all])
    const amounts = async (ask: Parameters<typeof list>[0]) => (await list(ask)).map(({ amount }) => amount)
    expect(await amounts({ kind: "topup" })).toEqual([100n])
    expect(await amounts({ kind: "adjustment" })).toEqual([-5n])
    expect(await amounts({ kind: "charge" })).toEqual([-4n, -3n, -2n, -1n])
    expect(await amounts({ reference: charges[1]!.id })).toEqual([-2n])
    expect(await amounts({ since: 2000, until: 4000 })).toEqual([-3n, -2n])
    const everyone = await listLedgerBefore(fresh.store.db, { before: null, limit: 1000, kind: "topup" })
    expect(new Set(everyone.map((line) => line.account)).size).toBeGreaterThan(1)
    expect(all[1]).toMatchObject({
      measured: { model: charges[3]!.model, endpoint: charges[3]!.endpoint, measured: charges[3]!.measured },
      price: charges[3]!.price,
      createdAt: 4000,
    })
  })
})
