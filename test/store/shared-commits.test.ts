import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { sql } from "kysely"
import { openStore, type Store } from "../../src/store/db.ts"
import type { Reader } from "../../src/store/schema.ts"
import { transactTogether, writeTogether } from "../../src/store/shared-commits.ts"
import { engines, freshStore } from "./engines.ts"

const insert = (id: number) => (db: Reader) => sql`insert into notes (id) values (${id})`.execute(db)

async function notes({ db }: Store): Promise<readonly number[]> {
  const { rows } = await sql<{ id: bigint }>`select id from notes order by id`.execute(db)
  return rows.map(({ id }) => Number(id))
}

async function withNotes(store: Store): Promise<void> {
  await sql`create table notes (id bigint primary key)`.execute(store.db)
}

test.each([...engines])("many writes at once are all there, and each tells its own result, %s", async (engine) => {
  const { store, close } = await freshStore(engine)
  await withNotes(store)
  const ids = Array.from({ length: 500 }, (_, number) => number)
  const told = await Promise.all(ids.map((id) => writeTogether(store, (db) => insert(id)(db).then(() => id))))
  expect(told).toEqual(ids)
  expect(await notes(store)).toEqual(ids)
  await close()
})

test.each([...engines])("a write that fails takes no other with it, and leaves nothing behind, %s", async (engine) => {
  const { store, close } = await freshStore(engine)
  await withNotes(store)
  const half = transactTogether(store, async (trx) => {
    await insert(100)(trx)
    throw new Error("half-way")
  })
  const ends = await Promise.allSettled([
    writeTogether(store, insert(1)),
    half,
    writeTogether(store, insert(2)),
    writeTogether(store, insert(2)),
    writeTogether(store, insert(3)),
  ])
  expect(ends.map(({ status }) => status).filter((status) => status === "rejected").length).toBe(2)
  await expect(half).rejects.toThrow("half-way")
  expect(await notes(store)).toEqual([1, 2, 3])
  await close()
})

test("with SQLite a write is in the file when it resolves, and those that came together were one commit", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-commits-"))
  const file = join(folder, "tollgate.db")
  const store = await openStore({ kind: "sqlite", file })
  await withNotes(store)
  const other = new Database(file, { readonly: true })
  const seen = () => other.query<{ count: number }, []>("select count(*) as count from notes").get()!.count
  const firstSeen: number[] = []
  await Promise.all(
    Array.from({ length: 50 }, (_, id) => writeTogether(store, insert(id)).then(() => firstSeen.push(seen()))),
  )
  expect(firstSeen).toEqual(Array(50).fill(50))
  other.close()
  await store.close()
  rmSync(folder, { recursive: true })
})

test.each([...engines])("work of several statements sees what the work before it has written, %s", async (engine) => {
  const { store, close } = await freshStore(engine)
  await withNotes(store)
  const next = () =>
    transactTogether(store, async (trx) => {
      // Postgres keeps them apart only where they ask for it.
      if (engine === "postgres") await sql`lock table notes`.execute(trx)
      const { rows } = await sql<{ count: bigint }>`select count(*) as count from notes`.execute(trx)
      await insert(Number(rows[0]!.count))(trx)
    })
  await Promise.all(Array.from({ length: 300 }, next))
  expect(await notes(store)).toEqual(Array.from({ length: 300 }, (_, id) => id))
  await close()
})
