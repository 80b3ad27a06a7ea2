import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import { sql } from "kysely"
import { type DatabaseTarget, inTransaction, openStore, openStoreForReading, type Store } from "../../src/store/db.ts"
import { postTopup } from "../../src/store/ledger.ts"
import { allLines, allRequests, allUsage } from "../../src/store/reconcile-reads.ts"
import { postSettlements } from "../../src/store/settlements.ts"
import { engines, type FreshDatabase, freshDatabase, giveAccount, slowStart } from "./engines.ts"
import { openElsewhere, postElsewhere } from "./processes.ts"
import { idOf, requestRecord } from "./records.ts"

describe.each([...engines])("reading on %s", (engine) => {
  let database: FreshDatabase
  let target: DatabaseTarget
  const opened: { close(): Promise<void> }[] = []
  beforeEach(async () => {
    database = await freshDatabase(engine)
    target = database.target
  }, slowStart)
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close()
    database.remove()
  })
  const open = async () => {
    const store = await openStore(target)
    opened.push(store)
    return store
  }
  const openForReading = async () => {
    const reader = await openStoreForReading(target)
    opened.push(reader)
    return reader
  }
  const fill = async (store: Store, requests: number) => {
    for (const name of ["a", "b"]) await giveAccount(store, name)
    const ids = [await idOf(store, "a"), await idOf(store, "b")]
    const records = Array.from({ length: requests }, (_, n) =>
      requestRecord(ids[n % 2]!, { endedAt: (n % 1200) * 3_600_000, model: `m-${n % 2}` }),
    )
    await postSettlements(store, records, { mayBeKnown: false })
    return { ids, records }
  }

  test("everything comes in order and in full, over many pages", async () => {
    const store = await open()
    const { records } = await fill(store, 2500)
    const reader = await openForReading()
    expect(reader.engine).toBe(engine)
    await reader.snapshot(async (db) => {
      const lines = await Array.fromAsync(allLines(db))
      const place = lines.map(({ accountId, id }) => `${accountId} ${String(id).padStart(9, "0")}`)
      expect(place).toEqual(place.toSorted())
      expect(lines.map(({ reference }) => reference).toSorted()).toEqual(records.map(({ id }) => id).toSorted())
      const requests = await Array.fromAsync(allRequests(db))
      expect(requests).toEqual(records.toSorted((a, b) => (a.id < b.id ? -1 : 1)))
      const hours = await Array.fromAsync(allUsage(db, "hour"))
      expect(hours.reduce((sum, { sums }) => sum + sums.requests, 0n)).toBe(2500n)
      expect(new Set(hours.map((row) => `${row.time} ${row.accountId} ${row.model} ${row.upstream}`)).size).toBe(
        hours.length,
      )
      expect(hours.map(({ time }) => time)).toEqual(hours.map(({ time }) => time).toSorted((a, b) => a - b))
      const days = await Array.fromAsync(allUsage(db, "day"))
      expect(days.reduce((sum, { sums }) => sum + sums.charge, 0n)).toBe(12_500n)
    })
  })

  test("one who reads sees one moment, while another process goes on writing", async () => {
    const store = await open()
    const { ids } = await fill(store, 10)
    await store.close()
    const reader = await openForReading()
    await reader.snapshot(async (db) => {
      const before = await Array.fromAsync(allLines(db))
      await postElsewhere(target, ids, 5)
      expect(await Array.fromAsync(allLines(db))).toEqual(before)
      const requests = await Array.fromAsync(allRequests(db))
      expect(requests).toHaveLength(before.length)
    })
    expect((await reader.snapshot((db) => Array.fromAsync(allLines(db)))).length).toBe(20)
  })

  test("it can be read while another process has it, and after that has ended", async () => {
    const writer = await openElsewhere(target)
    try {
      expect(writer.said).toBe("open")
      const reader = await openForReading()
      expect(await reader.snapshot((db) => Array.fromAsync(allLines(db)))).toEqual([])
    } finally {
      await writer.kill()
    }
    const store = await open()
    await fill(store, 3)
    await store.close()
    const reader = await openForReading()
    expect(await reader.snapshot((db) => Array.fromAsync(allRequests(db)))).toHaveLength(3)
  })

  test("one who reads cannot write", async () => {
    const store = await open()
    await giveAccount(store, "a")
    const reader = await openForReading()
    const writing = reader.snapshot((db) => sql`update accounts set suspended = 1`.execute(db))
    await expect(writing).rejects.toThrow(/read-?only/i)
    await inTransaction(store, (trx) => postTopup(trx, { account: "a", amount: 1n, reference: "r", note: null }))
  })

  test("a database that is not up to date is refused and left alone", async () => {
    const store = await open()
    await sql`delete from kysely_migration where name = '0002-money'`.execute(store.db)
    await store.close()
    await expect(openForReading()).rejects.toThrow(
      /^cannot open the database .*: it is of an older version \(no 0002-money\); start this version of Tollgate on it once$/,
    )
  })

  test("one of a newer version is refused too", async () => {
    const store = await open()
    await sql`insert into kysely_migration (name, timestamp) values ('0099-future', '2999-01-01')`.execute(store.db)
    await expect(openForReading()).rejects.toThrow(/made by a newer version of Tollgate \(it has 0099-future\)/)
  })

  test("one that is empty or not there is refused", async () => {
    if (target.kind === "sqlite") {
      await expect(openForReading()).rejects.toThrow(`cannot open the database ${target.file}: there is no such file`)
      expect(await Bun.file(target.file).exists()).toBe(false)
      await Bun.write(target.file, "")
    }
    await expect(openForReading()).rejects.toThrow(
      "it has no tables of Tollgate; start this version of Tollgate on it once",
    )
  })
})
