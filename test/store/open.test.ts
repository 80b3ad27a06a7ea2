import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import { Kysely, sql } from "kysely"
import { openVault } from "../../src/lib/seal.ts"
import { readCatalog } from "../../src/store/catalog.ts"
import { type DatabaseTarget, inTransaction, openStore, type Store } from "../../src/store/db.ts"
import { isUnavailable } from "../../src/store/errors.ts"
import { migrateToLatest } from "../../src/store/migrate.ts"
import { first } from "../../src/store/migrations/0001-first.ts"
import { migrations } from "../../src/store/migrations/list.ts"
import { savePlan } from "../../src/store/plans.ts"
import { openPostgres } from "../../src/store/postgres.ts"
import type { Tables } from "../../src/store/schema.ts"
import { saveSetting } from "../../src/store/settings.ts"
import { openSqlite } from "../../src/store/sqlite.ts"
import { credentialContext, saveUpstream } from "../../src/store/upstreams.ts"
import { bumpCatalogVersion, requestsKeptSince } from "../../src/store/versions.ts"
import { defaultPlan, engines, type FreshDatabase, freshDatabase, slowStart } from "./engines.ts"
import { type Opener, openElsewhere } from "./processes.ts"

describe.each([...engines])("opening on %s", (engine) => {
  let database: FreshDatabase
  let target: DatabaseTarget
  const opened: Store[] = []
  const elsewhere: Opener[] = []
  beforeEach(async () => {
    database = await freshDatabase(engine)
    target = database.target
  }, slowStart)
  afterEach(async () => {
    for (const opener of elsewhere.splice(0)) await opener.kill()
    for (const store of opened.splice(0)) await store.close()
    database.remove()
  })
  const open = async () => {
    const store = await openStore(target)
    opened.push(store)
    return store
  }
  const openThere = async (mode?: "slow") => {
    const opener = await openElsewhere(target, mode)
    elsewhere.push(opener)
    return opener
  }

  test("an empty database becomes one that answers, and says which engine it is", async () => {
    const store = await open()
    await store.ping()
    expect(store.engine).toBe(engine)
    expect(await readCatalog(store.db)).toEqual({ version: 0, plans: [], upstreams: [], models: [], settings: {} })
  })

  test("reopening keeps the data; closing twice does no harm", async () => {
    const first = await open()
    await inTransaction(first, async (trx) => {
      await savePlan(trx, defaultPlan)
      await bumpCatalogVersion(trx)
    })
    await first.close()
    await first.close()
    const second = await open()
    expect(await readCatalog(second.db)).toMatchObject({ version: 1, plans: [defaultPlan] })
  })

  test("another master key opens the database but not its secrets, and says so", async () => {
    const store = await open()
    const right = openVault("the right master key, long enough")
    const wrong = openVault("the wrong master key, long enough")
    const context = credentialContext("openai", 0)
    const credentials = [{ sealed: right.seal("sk-1", context), digest: right.digest("sk-1") }]
    const fields = { name: "openai", vendor: "openai", baseUrl: null, headers: {}, timeouts: {}, settings: {} }
    await inTransaction(store, (trx) => saveUpstream(trx, { ...fields, concurrency: 0, credentials }))
    const sealed = (await readCatalog(store.db)).upstreams[0]!.credentials[0]!.sealed
    expect(right.unseal(sealed, context)).toBe("sk-1")
    expect(() => wrong.unseal(sealed, context)).toThrow("cannot unseal upstream/openai/0: the master key is not")
  })

  test("a transaction that fails leaves nothing behind", async () => {
    const store = await open()
    const failing = inTransaction(store, async (trx) => {
      await saveSetting(trx, "a", 1)
      throw new Error("no")
    })
    await expect(failing).rejects.toThrow("no")
    expect((await readCatalog(store.db)).settings).toEqual({})
  })

  test("transactions at the same time do not see or undo each other's half", async () => {
    const store = await open()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) =>
        inTransaction(store, async (trx) => {
          await saveSetting(trx, `first-${n}`, n)
          await Bun.sleep(1)
          if (n % 2 === 1) throw new Error("undone")
          await saveSetting(trx, `second-${n}`, n)
        }),
      ),
    )
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(10)
    const { settings } = await readCatalog(store.db)
    const kept = Object.entries(settings).map(([name, n]) => [name.split("-")[0], n])
    expect(kept).toHaveLength(20)
    for (const [, n] of kept) expect(Number(n) % 2).toBe(0)
  })

  test("an error swallowed inside a transaction never turns into a commit that silently kept nothing", async () => {
    const store = await open()
    const outcome = await inTransaction(store, async (trx) => {
      await saveSetting(trx, "a", 1)
      await sql`select * from no_such_table`.execute(trx).catch(() => {})
    }).then(
      () => "committed",
      () => "failed",
    )
    const kept = "a" in (await readCatalog(store.db)).settings
    expect({ outcome, kept }).toEqual(
      engine === "postgres" ? { outcome: "failed", kept: false } : { outcome: "committed", kept: true },
    )
  })

  test("a database of a newer version is refused with a message that says so, and is left alone", async () => {
    const store = await open()
    await sql`insert into kysely_migration (name, timestamp) values ('0099-future', '2999-01-01')`.execute(store.db)
    await store.close()
    await expect(open()).rejects.toThrow(/made by a newer version of Tollgate \(it has 0099-future\)/)
  })

  test("a migration that fails changes nothing", async () => {
    const store = await open()
    const broken = {
      async up(db: Store["db"]) {
        await sql`create table half_done (a text)`.execute(db)
        throw new Error("broken migration")
      },
    }
    const list = { ...migrations, "9999-broken": () => broken }
    await expect(migrateToLatest(store.db, engine, list)).rejects.toThrow("broken migration")
    await expect(sql`select * from half_done`.execute(store.db)).rejects.toThrow(/half_done/)
  })

  test("a database of the first release is brought up to date with its ledger, which stays append-only", async () => {
    const { dialect, release } =
      target.kind === "sqlite" ? openSqlite(target.file) : { dialect: openPostgres(target.url), release() {} }
    const old = new Kysely<Tables>({ dialect })
    await migrateToLatest(old, engine, { "0001-first": first })
    await sql`insert into plans values ('p', 'default', 0, '[]', '1', 0, 0)`.execute(old)
    await sql`insert into accounts values ('a', 'acme', 'p', null, 0, 0, 0)`.execute(old)
    await sql`insert into ledger (account_id, kind, amount, balance_after, reference, created_at)
      values ('a', 'topup', 7, 7, 'r', 1)`.execute(old)
    await old.destroy()
    release()
    const store = await open()
    const lines = await store.db.selectFrom("ledger").selectAll().execute()
    expect(lines).toEqual([expect.objectContaining({ balance_after: 7n, price: null, usage_invalid: 0n })])
    await expect(sql`update ledger set price = '{}'`.execute(store.db)).rejects.toThrow("the ledger is append-only")
    await expect(sql`delete from ledger`.execute(store.db)).rejects.toThrow("the ledger is append-only")
    expect(await requestsKeptSince(store.db)).toBe(0)
  })

  test("a process killed in the middle of its migration leaves neither lock nor half a schema", async () => {
    const stuck = await openThere("slow")
    expect(stuck.said).toBe("stuck")
    await stuck.kill()
    const store = await open()
    await expect(sql`select * from half_done`.execute(store.db)).rejects.toThrow(/half_done/)
    expect((await readCatalog(store.db)).version).toBe(0)
  })

  test("errors of the request do not count as the database being away", async () => {
    const store = await open()
    const wrong: unknown = await sql`select * from no_such_table`.execute(store.db).catch((error: unknown) => error)
    expect(wrong).toBeInstanceOf(Error)
    expect(isUnavailable(wrong)).toBe(false)
    expect(isUnavailable(new Error("other"))).toBe(false)
    expect(isUnavailable("no error")).toBe(false)
  })
})
