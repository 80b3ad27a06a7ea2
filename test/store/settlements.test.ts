import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import fc from "fast-check"
import { sql } from "kysely"
import type { RequestRecord } from "../../src/core/request-record.ts"
import { deleteAccount } from "../../src/store/accounts.ts"
import { inTransaction } from "../../src/store/db.ts"
import { isDuplicate } from "../../src/store/errors.ts"
import { balanceOf, largestAmount, postAdjustment, postTopup, smallestAmount } from "../../src/store/ledger.ts"
import { allLines, allUsage, type StoredUsage } from "../../src/store/reconcile-reads.ts"
import { deleteRequestsBefore, findRequest } from "../../src/store/requests.ts"
import { postSettlements } from "../../src/store/settlements.ts"
import { engines, type FreshStore, freshStore, giveAccount, slowStart } from "./engines.ts"
import { anyRecords, idOf, requestRecord } from "./records.ts"

const once = { mayBeKnown: false }
const again = { mayBeKnown: true }
const afterAllOfThem = 1_800_000_000_000

describe.each([...engines])("settlements on %s", (engine) => {
  let fresh: FreshStore
  beforeAll(async () => {
    fresh = await freshStore(engine)
  }, slowStart)
  afterAll(() => fresh.close())

  let accounts = 0
  /** An account of this test alone, with money. */
  const accountWith = async (balance: bigint) => {
    const name = `account-${++accounts}`
    await giveAccount(fresh.store, name)
    if (balance > 0n) {
      const topup = { account: name, amount: balance, reference: `t-${name}`, note: null }
      await inTransaction(fresh.store, (trx) => postTopup(trx, topup))
    }
    return { name, id: await idOf(fresh.store, name) }
  }
  const linesOf = (accountId: string) =>
    fresh.store.db.selectFrom("ledger").selectAll().where("account_id", "=", accountId).orderBy("id").execute()
  const requestsOf = async (accountId: string) => {
    const rows = await fresh.store.db.selectFrom("requests").select("id").where("account_id", "=", accountId).execute()
    return rows.map((row) => row.id)
  }
  const usageOf = (accountId: string) =>
    fresh.store.db.selectFrom("usage_hours").selectAll().where("account_id", "=", accountId).execute()

  test("charges are written in the order given, each with the balance after it, in and across batches", async () => {
    const [a, b] = [await accountWith(100n), await accountWith(10n)]
    const batch = [
      requestRecord(a.id, { charge: 7n, endedAt: 9_000 }),
      requestRecord(b.id, { charge: 20n }),
      requestRecord(a.id, { charge: 0n }),
      requestRecord(a.id, { charge: 1n, endedAt: 8_000 }),
    ]
    expect(await postSettlements(fresh.store, batch, once)).toEqual({
      balances: new Map([
        [a.id, 92n],
        [b.id, -10n],
      ]),
      orphans: [],
    })
    const next = requestRecord(a.id, { charge: 2n })
    expect((await postSettlements(fresh.store, [next], once)).balances).toEqual(new Map([[a.id, 90n]]))
    const lines = (await linesOf(a.id)).slice(1)
    expect(lines.map(({ reference, amount, balance_after }) => [reference, amount, balance_after])).toEqual([
      [batch[0]!.id, -7n, 93n],
      [batch[3]!.id, -1n, 92n],
      [next.id, -2n, 90n],
    ])
    expect(lines.map(({ kind, created_at }) => [kind, created_at])).toEqual([
      ["charge", 9_000n],
      ["charge", 8_000n],
      ["charge", BigInt(next.endedAt)],
    ])
    expect(await requestsOf(a.id)).toHaveLength(4)
    expect((await usageOf(a.id)).reduce((sum, { requests }) => sum + requests, 0n)).toBe(4n)
  })

  test.each([1, 2, 3, 64, 65, 150])("a batch of %i keeps its order and loses nothing", async (size) => {
    const { id } = await accountWith(1_000_000n)
    const batch = Array.from({ length: size }, (_, n) => requestRecord(id, { charge: BigInt(n + 1), durationMs: n }))
    await postSettlements(fresh.store, batch, once)
    const lines = (await linesOf(id)).slice(1)
    expect(lines.map(({ reference }) => reference)).toEqual(batch.map((record) => record.id))
    expect((await requestsOf(id)).toSorted()).toEqual(batch.map((record) => record.id).toSorted())
    expect(await balanceOf(fresh.store.db, id)).toBe(1_000_000n - BigInt((size * (size + 1)) / 2))
  })

  test("nothing to post is nothing", async () => {
    expect(await postSettlements(fresh.store, [], once)).toEqual({ balances: new Map(), orphans: [] })
    expect(await postSettlements(fresh.store, [], again)).toEqual({ balances: new Map(), orphans: [] })
  })

  test("a line carries what it was measured and priced by", async () => {
    const { id } = await accountWith(0n)
    const record = requestRecord(id, { estimated: true, usageInvalid: true })
    await postSettlements(fresh.store, [record], once)
    const [line] = await linesOf(id)
    expect(line).toMatchObject({ estimated: 1n, usage_invalid: 1n, note: null })
    expect(JSON.parse(line!.measured!)).toEqual({
      model: "gpt-5",
      upstream: "openai-main",
      endpoint: "chat",
      input_tokens: 10,
      cached_input_tokens: 2,
      output_tokens: 5,
      reasoning_tokens: 1,
    })
    expect(JSON.parse(line!.price!)).toEqual({ version: 3, multiplier: "1.5", units: { input: "1.25", output: "10" } })
  })

  test("a record that is in the books already makes the whole batch fail, as a duplicate", async () => {
    const { id } = await accountWith(100n)
    for (const charge of [5n, 0n]) {
      const known = requestRecord(id, { charge })
      await postSettlements(fresh.store, [known], once)
      const before = [await linesOf(id), await requestsOf(id), await usageOf(id)]
      const batch = [requestRecord(id), known, requestRecord(id)]
      const error: unknown = await postSettlements(fresh.store, batch, once).catch((reason: unknown) => reason)
      expect(isDuplicate(error)).toBe(true)
      expect([await linesOf(id), await requestsOf(id), await usageOf(id)]).toEqual(before)
    }
    const twice = requestRecord(id)
    const error: unknown = await postSettlements(fresh.store, [twice, twice], once).catch((reason: unknown) => reason)
    expect(isDuplicate(error)).toBe(true)
  })

  test("posted again after nobody knew how it ended: what is there is passed over, the rest is written once", async () => {
    const { id } = await accountWith(100n)
    const records = [requestRecord(id), requestRecord(id, { charge: 0n }), requestRecord(id), requestRecord(id)]
    await postSettlements(fresh.store, records.slice(0, 2), once)
    const batch = [records[3]!, records[0]!, records[1]!, records[2]!, records[3]!]
    expect((await postSettlements(fresh.store, batch, again)).balances).toEqual(new Map([[id, 85n]]))
    expect((await postSettlements(fresh.store, batch, again)).balances).toEqual(new Map([[id, 85n]]))
    const references = (await linesOf(id)).slice(1).map(({ reference }) => reference)
    expect(references).toEqual([records[0]!.id, records[3]!.id, records[2]!.id])
    expect((await requestsOf(id)).toSorted()).toEqual(records.map((record) => record.id).toSorted())
    expect((await usageOf(id)).map(({ requests, charge }) => [requests, charge])).toEqual([[4n, 15n]])
  })

  test("a charge whose request was deleted since is still known", async () => {
    const { id } = await accountWith(100n)
    const record = requestRecord(id)
    await postSettlements(fresh.store, [record], once)
    await deleteRequestsBefore(fresh.store, afterAllOfThem, 10_000)
    expect(await findRequest(fresh.store.db, record.id)).toBeNull()
    expect((await postSettlements(fresh.store, [record], again)).balances).toEqual(new Map([[id, 95n]]))
    expect(await requestsOf(id)).toEqual([])
  })

  test("a record of an account that was deleted meanwhile is given back; the others are posted", async () => {
    const [gone, here] = [await accountWith(0n), await accountWith(10n)]
    await inTransaction(fresh.store, (trx) => deleteAccount(trx, gone.name))
    const orphan = requestRecord(gone.id)
    const { balances, orphans } = await postSettlements(fresh.store, [orphan, requestRecord(here.id)], once)
    expect(orphans).toEqual([orphan])
    expect(balances).toEqual(new Map([[here.id, 5n]]))
    expect(await requestsOf(gone.id)).toEqual([])
    expect(await usageOf(gone.id)).toEqual([])
    expect((await postSettlements(fresh.store, [orphan], again)).orphans).toEqual([orphan])
  })

  test("what 64 bits cannot hold fails loudly and changes nothing", async () => {
    const { id, name } = await accountWith(0n)
    const adjustment = { account: name, amount: smallestAmount + 10n, reference: `low-${name}`, note: "low" }
    await inTransaction(fresh.store, (trx) => postAdjustment(trx, adjustment))
    const post = (...charges: bigint[]) =>
      postSettlements(
        fresh.store,
        charges.map((charge) => requestRecord(id, { charge })),
        once,
      )
    await expect(post(6n, 5n)).rejects.toThrow(/beyond what can be kept/)
    await expect(post(2n ** 64n)).rejects.toThrow(/beyond what can be kept/)
    await expect(post(-1n)).rejects.toThrow(/below zero/)
    expect(await linesOf(id)).toHaveLength(1)
    expect((await post(6n, 4n)).balances).toEqual(new Map([[id, smallestAmount]]))
    const rich = await accountWith(largestAmount)
    const huge = requestRecord(rich.id, { charge: largestAmount })
    await postSettlements(fresh.store, [huge], once)
    // The sum of the hour has no room for more, although the balance has.
    const more = requestRecord(rich.id, { charge: 1n })
    await expect(postSettlements(fresh.store, [more], once)).rejects.toThrow()
    expect(await linesOf(rich.id)).toHaveLength(2)
  })

  test("a name that no database could keep is kept as far as it can be", async () => {
    const { id } = await accountWith(10n)
    const record = requestRecord(id, { model: `a\0b${"x".repeat(100_000)}` })
    await postSettlements(fresh.store, [record], once)
    const [line] = await linesOf(id).then((lines) => lines.slice(1))
    const kept = (await findRequest(fresh.store.db, record.id))?.model
    expect(kept).toStartWith("abxxx")
    expect(kept!.length).toBeLessThan(1000)
    expect(JSON.parse(line!.measured!).model).toBe(kept)
    expect((await usageOf(id)).map(({ model }) => model)).toEqual([kept!])
  })

  test("the database refuses to change or delete a charge with all it carries", async () => {
    const { id } = await accountWith(10n)
    const record = requestRecord(id)
    await postSettlements(fresh.store, [record], once)
    const before = await linesOf(id)
    for (const attempt of [
      `update ledger set price = null where reference = '${record.id}'`,
      `update ledger set usage_invalid = 1 where reference = '${record.id}'`,
      `delete from ledger where reference = '${record.id}'`,
    ]) {
      await expect(sql.raw(attempt).execute(fresh.store.db)).rejects.toThrow("the ledger is append-only")
    }
    const bad = sql`insert into ledger (account_id, kind, amount, balance_after, reference, created_at, usage_invalid)
      values (${id}, 'charge', -1, 1, 'bad flag', 0, 2)`.execute(fresh.store.db)
    await expect(bad).rejects.toThrow(/check constraint/i)
    expect(await linesOf(id)).toEqual(before)
  })

  test("whatever is posted, roll-ups and balances are what adding up gives", async () => {
    const owners = [await accountWith(0n), await accountWith(0n)].map(({ id }) => id)
    const posted: RequestRecord[] = []
    await fc.assert(
      fc.asyncProperty(anyRecords(owners, 20), async (records) => {
        await postSettlements(fresh.store, records, once)
        posted.push(...records)
        for (const span of ["hour", "day"] as const) {
          const kept = await Array.fromAsync(allUsage(fresh.store.db, span))
          const own = kept.filter(({ accountId }) => owners.includes(accountId))
          expect(own.map(described).toSorted()).toEqual(addedUp(posted, span === "hour" ? 3_600_000 : 86_400_000))
        }
      }),
      { numRuns: 6 },
    )
    for (const owner of owners) {
      const lines = (await Array.fromAsync(allLines(fresh.store.db))).filter(({ accountId }) => accountId === owner)
      const charges = posted.filter(({ accountId, charge }) => accountId === owner && charge > 0n)
      expect(lines.map(({ reference }) => reference)).toEqual(charges.map((record) => record.id))
      let balance = 0n
      for (const line of lines) {
        balance += line.amount
        expect(line.balanceAfter).toBe(balance)
      }
    }
  })
})

function described({ time, accountId, model, upstream, sums }: StoredUsage): string {
  return [time, accountId, model, upstream, ...Object.entries(sums).map(([name, sum]) => `${name}=${sum}`)].join(" ")
}

/** The roll-up as one would make it by hand: for each place, one sum after the other over all the records. */
function addedUp(records: readonly RequestRecord[], spanMs: number): string[] {
  const places = Map.groupBy(records, (record) =>
    [Math.floor(record.endedAt / spanMs), record.accountId, record.model, record.upstream ?? ""].join(" "),
  )
  const lines = [...places].map(([place, own]) => {
    const sum = (quantity: (record: RequestRecord) => number | null | undefined) =>
      own.reduce((total, record) => total + (quantity(record) ?? 0), 0)
    return [
      place,
      `requests=${own.length}`,
      `failures=${own.filter(({ status, ending }) => status >= 400 || ending === "failed").length}`,
      `estimated=${own.filter(({ estimated }) => estimated).length}`,
      `input_tokens=${sum(({ measured }) => measured.tokens?.input)}`,
      `cached_input_tokens=${sum(({ measured }) => measured.tokens?.cachedInput)}`,
      `cache_write_tokens=${sum(({ measured }) => measured.tokens?.cacheWrite)}`,
      `audio_input_tokens=${sum(({ measured }) => measured.tokens?.audioInput)}`,
      `output_tokens=${sum(({ measured }) => measured.tokens?.output)}`,
      `reasoning_tokens=${sum(({ measured }) => measured.tokens?.reasoning)}`,
      `audio_output_tokens=${sum(({ measured }) => measured.tokens?.audioOutput)}`,
      `images=${sum(({ measured }) => measured.images)}`,
      `microseconds=${sum(({ measured }) => measured.microseconds)}`,
      `characters=${sum(({ measured }) => measured.characters)}`,
      `charge=${own.reduce((total, { charge }) => total + charge, 0n)}`,
      `duration_ms=${sum(({ durationMs }) => durationMs)}`,
      `first_token_ms=${sum(({ firstTokenMs }) => firstTokenMs)}`,
      `first_tokens=${own.filter(({ firstTokenMs }) => firstTokenMs !== null).length}`,
    ].join(" ")
  })
  return lines.toSorted()
}
