import { afterAll, beforeAll, expect, test } from "bun:test"
import { sql } from "kysely"
import { readCatalog } from "../../src/store/catalog.ts"
import { inTransaction, openStore } from "../../src/store/db.ts"
import { isUnavailable } from "../../src/store/errors.ts"
import { migrations } from "../../src/store/migrations/list.ts"
import { saveSetting } from "../../src/store/settings.ts"
import { launchPostgres, type PostgresServer } from "../support/postgres.ts"
import { slowStart } from "./engines.ts"
import { openElsewhere } from "./processes.ts"

let server: PostgresServer
beforeAll(async () => {
  server = await launchPostgres()
}, slowStart)
afterAll(() => server.stop())

test("five processes starting at once on an empty database all get it, migrated once", async () => {
  const target = { kind: "postgres", url: await server.freshDatabase() } as const
  const openers = await Promise.all(Array.from({ length: 5 }, () => openElsewhere(target)))
  try {
    expect(openers.map((opener) => opener.said)).toEqual(["open", "open", "open", "open", "open"])
  } finally {
    await Promise.all(openers.map((opener) => opener.kill()))
  }
  const store = await openStore(target)
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(store.db)
  expect(rows).toEqual(Object.keys(migrations).map((name) => ({ name })))
  await store.close()
}, 20_000)

test("those who wait for a migrator that is killed go on without it", async () => {
  const target = { kind: "postgres", url: await server.freshDatabase() } as const
  const stuck = await openElsewhere(target, "slow")
  expect(stuck.said).toBe("stuck")
  const waiting = Promise.all(Array.from({ length: 5 }, () => openElsewhere(target)))
  await Bun.sleep(300)
  await stuck.kill()
  const openers = await waiting
  await Promise.all(openers.map((opener) => opener.kill()))
  expect(openers.map((opener) => opener.said)).toEqual(["open", "open", "open", "open", "open"])
}, 20_000)

test("a server that stops gives errors known as unavailable, and once it is back everything works by itself", async () => {
  const store = await openStore({ kind: "postgres", url: await server.freshDatabase() }, { poolSize: 3 })
  await inTransaction(store, (trx) => saveSetting(trx, "before", 1))
  const inFlight = Array.from({ length: 6 }, (_, n) =>
    inTransaction(store, async (trx) => {
      await saveSetting(trx, `in-flight-${n}`, n)
      await sql`select pg_sleep(20)`.execute(trx)
    }).catch((error: unknown) => error),
  )
  await Bun.sleep(200)
  await server.kill()
  for (const error of await Promise.all(inFlight))
    expect([String(error), isUnavailable(error)]).toEqual([String(error), true])
  for (let attempt = 0; attempt < 4; attempt++) {
    const error: unknown = await store.ping().catch((reason: unknown) => reason)
    expect([String(error), isUnavailable(error)]).toEqual([String(error), true])
  }
  await server.start()
  await Promise.all(Array.from({ length: 10 }, () => store.ping()))
  expect((await readCatalog(store.db)).settings).toEqual({ before: 1 })
  await Promise.all(
    Array.from({ length: 10 }, (_, n) => inTransaction(store, (trx) => saveSetting(trx, `after-${n}`, n))),
  )
  await store.close()
}, 30_000)

test("a transaction whose server restarts in its middle fails as a whole: no later statement runs on its own", async () => {
  const store = await openStore({ kind: "postgres", url: await server.freshDatabase() }, { poolSize: 2 })
  const outcome: unknown = await inTransaction(store, async (trx) => {
    await saveSetting(trx, "first-half", 1)
    await server.restart()
    await saveSetting(trx, "second-half", 1).catch(() => {})
    await saveSetting(trx, "second-half", 1)
  }).catch((error: unknown) => error)
  expect(isUnavailable(outcome)).toBe(true)
  expect((await readCatalog(store.db)).settings).toEqual({})
  await store.close()
}, 30_000)

test("a connection that the server ends is replaced without anyone's doing", async () => {
  const store = await openStore({ kind: "postgres", url: await server.freshDatabase() }, { poolSize: 4 })
  await Promise.all(Array.from({ length: 4 }, () => sql`select pg_sleep(0.05)`.execute(store.db)))
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`.execute(store.db)
  await Bun.sleep(100)
  await Promise.all(Array.from({ length: 8 }, () => store.ping()))
  await store.close()
}, 20_000)

test("a server that is not there: one error with its address and without the password, known as unavailable", async () => {
  const gone = new URL(server.url)
  gone.password = "hunter2"
  await server.kill()
  const error: unknown = await openStore({ kind: "postgres", url: gone.href }).catch((reason: unknown) => reason)
  await server.start()
  expect(isUnavailable(error)).toBe(true)
  expect(String(error)).toContain(`cannot open the database ${gone.host}/postgres`)
  expect(Bun.inspect(error)).not.toContain("hunter2")
}, 20_000)

test("the database of the URL is used, whatever PGDATABASE says", async () => {
  const url = await server.freshDatabase()
  process.env.PGDATABASE = "postgres"
  try {
    const store = await openStore({ kind: "postgres", url })
    const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(store.db)
    expect(rows).toEqual([{ name: new URL(url).pathname.slice(1) }])
    await store.close()
  } finally {
    delete process.env.PGDATABASE
  }
})

test("a URL that cannot be read is refused without repeating the password in it", async () => {
  const error: unknown = await openStore({ kind: "postgres", url: "postgres://u:hunter2@host:port/db" }).catch(
    (reason: unknown) => reason,
  )
  expect(String(error)).toContain("cannot open the database of a URL that cannot be read")
  expect(String(error)).not.toContain("hunter2")
})
