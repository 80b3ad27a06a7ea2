import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { deleteAccount } from "../../src/store/accounts.ts"
import { inTransaction } from "../../src/store/db.ts"
import { postTopup } from "../../src/store/ledger.ts"
import { deleteRequestsBefore, findRequest, listRequestsBefore, type RequestAsk } from "../../src/store/requests.ts"
import { postSettlements } from "../../src/store/settlements.ts"
import { requestsKeptSince } from "../../src/store/versions.ts"
import { engines, type FreshStore, freshStore, giveAccount, slowStart } from "./engines.ts"
import { idOf, requestRecord } from "./records.ts"

describe.each([...engines])("requests on %s", (engine) => {
  let fresh: FreshStore
  beforeAll(async () => {
    fresh = await freshStore(engine)
  }, slowStart)
  afterAll(() => fresh.close())
  const account = async (name: string) => {
    await giveAccount(fresh.store, name)
    return idOf(fresh.store, name)
  }
  const post = (...records: ReturnType<typeof requestRecord>[]) =>
    postSettlements(fresh.store, records, { mayBeKnown: false })
  const list = (ask: Partial<RequestAsk>) => listRequestsBefore(fresh.store.db, { before: null, limit: 100, ...ask })

  test("a request is read back as it was posted, with its account's name and its ledger line", async () => {
    const id = await account("told")
    const topup = { account: "told", amount: 100n, reference: "told-1", note: null }
    await inTransaction(fresh.store, (trx) => postTopup(trx, topup))
    const charged = requestRecord(id)
    const refused = requestRecord(id, {
      upstream: null,
      upstreamModel: null,
      stream: false,
      attempts: [],
      status: 404,
      error: "model_not_found",
      ending: "refused",
      firstTokenMs: null,
      price: null,
      charge: 0n,
    })
    await post(charged, refused)
    expect(await findRequest(fresh.store.db, charged.id)).toEqual({
      ...charged,
      account: "told",
      line: { amount: -5n, balanceAfter: 95n },
    })
    expect(await findRequest(fresh.store.db, refused.id)).toEqual({ ...refused, account: "told", line: null })
    expect(await findRequest(fresh.store.db, "req_unknown")).toBeNull()
    const { line: _, ...listed } = (await findRequest(fresh.store.db, charged.id))!
    expect((await list({ account: id })).find((each) => each.id === charged.id)).toEqual(listed)
  })

  test("times in fractions of a millisecond are rounded to whole ones", async () => {
    const id = await account("exact")
    const record = requestRecord(id, { firstTokenMs: 12.5004, durationMs: 99.4999, endedAt: 1_790_000_000_000.25 })
    await post(record)
    expect(await findRequest(fresh.store.db, record.id)).toMatchObject({
      firstTokenMs: 13,
      durationMs: 99,
      endedAt: 1_790_000_000_000,
    })
  })

  test("a list goes on without gap or double, although many ended in the same millisecond", async () => {
    const id = await account("paged")
    const records = Array.from({ length: 23 }, (_, n) =>
      requestRecord(id, { endedAt: 5_000 + Math.floor(n / 9), charge: 0n }),
    )
    await post(...records)
    const seen: string[] = []
    let before: RequestAsk["before"] = null
    for (;;) {
      const page = await list({ account: id, before, limit: 4 })
      seen.push(...page.map((each) => each.id))
      const last = page.at(-1)
      if (last === undefined) break
      before = { endedAt: last.endedAt, id: last.id }
      // What ends meanwhile is newer than the cursor, and shifts nothing.
      await post(requestRecord(id, { endedAt: 9_000, charge: 0n }))
    }
    const expected = records.toSorted((a, b) => b.endedAt - a.endedAt || (a.id < b.id ? 1 : -1)).map(({ id }) => id)
    expect(seen).toEqual(expected)
  })

  test("every filter takes what it names and nothing else", async () => {
    const [mine, other] = [await account("filtered"), await account("not filtered")]
    const odd = requestRecord(mine, {
      keyId: "key-odd",
      keyName: "odd",
      model: "odd-model",
      upstream: "odd-upstream",
      endpoint: "speech",
      status: 418,
      error: "odd_error",
      ending: "failed",
      endedAt: 777_000,
    })
    await post(odd, requestRecord(mine, { endedAt: 776_999 }), requestRecord(other, { endedAt: 777_001 }))
    for (const filter of [
      { key: "odd" },
      { key: "key-odd" },
      { model: "odd-model" },
      { upstream: "odd-upstream" },
      { endpoint: "speech" },
      { status: 418 },
      { error: "odd_error" },
      { ending: "failed" },
      { since: 777_000, until: 777_001 },
      { account: mine, since: 777_000, until: 800_000 },
    ] as const) {
      expect([filter, (await list(filter)).map(({ id }) => id)]).toEqual([filter, [odd.id]])
    }
    expect(await list({ account: other, model: "odd-model" })).toEqual([])
  })

  test("what a deleted account asked for is still there, without a name", async () => {
    const id = await account("leaver")
    const record = requestRecord(id, { charge: 0n })
    await post(record)
    await inTransaction(fresh.store, (trx) => deleteAccount(trx, "leaver"))
    expect(await list({ account: id })).toEqual([{ ...record, account: null }])
  })

  test("old requests go in small batches, the oldest first; lines and roll-ups stay", async () => {
    await deleteRequestsBefore(fresh.store, 2_000_000_000_000, 10_000)
    const id = await account("kept")
    const records = Array.from({ length: 7 }, (_, n) => requestRecord(id, { endedAt: 3_000_000_000_000 + n }))
    await post(...records)
    const left = async () => (await list({ account: id })).map((each) => each.endedAt - 3_000_000_000_000).toSorted()
    const time = 3_000_000_000_000 + 5
    expect(await deleteRequestsBefore(fresh.store, time, 3)).toBe(3)
    expect(await left()).toEqual([3, 4, 5, 6])
    expect(await deleteRequestsBefore(fresh.store, time, 3)).toBe(2)
    expect(await left()).toEqual([5, 6])
    expect(await deleteRequestsBefore(fresh.store, time, 3)).toBe(0)
    expect(await requestsKeptSince(fresh.store.db)).toBe(time)
    const { count } = fresh.store.db.fn
    const lines = fresh.store.db.selectFrom("ledger").select(count<bigint>("id").as("n")).where("account_id", "=", id)
    expect((await lines.executeTakeFirstOrThrow()).n).toBe(7n)
    const usage = fresh.store.db.selectFrom("usage_hours").select("requests").where("account_id", "=", id)
    expect(await usage.execute()).toEqual([{ requests: 7n }])
  })

  test("the time since when all requests are kept never goes back", async () => {
    const before = await requestsKeptSince(fresh.store.db)
    await deleteRequestsBefore(fresh.store, before - 1, 10)
    expect(await requestsKeptSince(fresh.store.db)).toBe(before)
    await deleteRequestsBefore(fresh.store, before + 1, 10)
    expect(await requestsKeptSince(fresh.store.db)).toBe(before + 1)
  })
})
