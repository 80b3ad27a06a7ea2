import { Database } from "bun:sqlite"
import { afterEach, beforeEach, expect, test } from "bun:test"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { sql } from "kysely"
import { inTransaction, openStore, type Store } from "../../src/store/db.ts"
import { isUnavailable, StoreLockedError } from "../../src/store/errors.ts"
import { saveSetting } from "../../src/store/settings.ts"
import { type Opener, openElsewhere } from "./processes.ts"

let folder = ""
let file = ""
const opened: (Store | Opener)[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-file-"))
  file = join(folder, "data", "tollgate.db")
})
afterEach(async () => {
  for (const each of opened.splice(0)) await ("kill" in each ? each.kill() : each.close())
  rmSync(folder, { recursive: true, force: true })
})
async function open(): Promise<Store> {
  const store = await openStore({ kind: "sqlite", file })
  opened.push(store)
  return store
}
async function openThere(): Promise<Opener> {
  const opener = await openElsewhere({ kind: "sqlite", file })
  opened.push(opener)
  return opener
}

test("a second process is refused with the first one's pid and what to do", async () => {
  await open()
  const second = await openThere()
  expect(second.said).toStartWith(
    `StoreLockedError: ${file} is in use by another Tollgate process (pid ${process.pid})`,
  )
  expect(second.said).toContain("stop that process, give this one another data folder, or use Postgres")
})

test("the file of a process killed with SIGKILL can be opened at once", async () => {
  const first = await openThere()
  expect(first.said).toBe("open")
  const refused: unknown = await open().catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(StoreLockedError)
  expect(String(refused)).toContain(`(pid ${first.pid})`)
  await first.kill()
  await (await open()).ping()
})

test("being refused does not loosen the first one's hold, even in one process", async () => {
  await open()
  await expect(open()).rejects.toThrow(StoreLockedError)
  await expect(open()).rejects.toThrow(StoreLockedError)
  expect((await openThere()).said).toStartWith("StoreLockedError")
})

test("a closed store lets the next process in and leaves only the data and lock files", async () => {
  const store = await open()
  await store.close()
  expect(readdirSync(join(folder, "data")).toSorted()).toEqual(["tollgate.db", "tollgate.db.lock"])
  expect((await openThere()).said).toBe("open")
})

test("a backup tool can read the data file while it is in use", async () => {
  const store = await open()
  await inTransaction(store, (trx) => saveSetting(trx, "seen", true))
  const tool = new Database(file, { readonly: true })
  try {
    expect(tool.query("select value from settings where key = 'seen'").get()).toEqual({ value: "true" })
  } finally {
    tool.close()
  }
})

test("all files are for their owner alone, also where the file was there before", async () => {
  mkdirSync(join(folder, "data"))
  writeFileSync(file, "", { mode: 0o644 })
  const store = await open()
  await inTransaction(store, (trx) => saveSetting(trx, "a", 1))
  const files = readdirSync(join(folder, "data"))
  expect(files.toSorted()).toEqual(["", "-shm", "-wal", ".lock", ".pid"].map((end) => `tollgate.db${end}`).toSorted())
  for (const name of files) expect([name, statSync(join(folder, "data", name)).mode & 0o777]).toEqual([name, 0o600])
})

test("it runs with the safe settings: WAL, full sync, foreign keys", async () => {
  const { db } = await open()
  const read = async (name: string) =>
    Object.values((await sql.raw<object>(`pragma ${name}`).execute(db)).rows[0] ?? {})
  expect(await read("journal_mode")).toEqual(["wal"])
  expect(await read("synchronous")).toEqual([2n])
  expect(await read("foreign_keys")).toEqual([1n])
})

test("a file that is not a database is refused by name, left as it is, and not kept locked", async () => {
  mkdirSync(join(folder, "data"))
  writeFileSync(file, "this is a text file, and long enough to be looked at".repeat(50))
  await expect(open()).rejects.toThrow(/tollgate\.db/)
  rmSync(file)
  await (await open()).ping()
})

test("a folder that cannot be made is an error that names it", async () => {
  writeFileSync(join(folder, "data"), "a file in the way")
  await expect(open()).rejects.toThrow(join(folder, "data"))
  expect(existsSync(file)).toBe(false)
})

test("a write lock held by someone else counts as the database being away", async () => {
  const store = await open()
  await sql`pragma busy_timeout = 50`.execute(store.db)
  const other = new Database(file)
  try {
    other.run("begin immediate")
    const error: unknown = await inTransaction(store, (trx) => saveSetting(trx, "a", 1)).catch(
      (reason: unknown) => reason,
    )
    expect(isUnavailable(error)).toBe(true)
    other.run("rollback")
    expect(await inTransaction(store, (trx) => saveSetting(trx, "a", 1))).toBe("created")
  } finally {
    other.close()
  }
})

test("a transaction has the write lock from its beginning, so that it cannot fail for it half-way", async () => {
  const store = await open()
  const other = new Database(file)
  try {
    await inTransaction(store, async (trx) => {
      expect(() => other.run("begin immediate")).toThrow(/locked/)
      await saveSetting(trx, "a", 1)
    })
  } finally {
    other.close()
  }
})

test("more different statements than are kept prepared still all work", async () => {
  const { db } = await open()
  for (let round = 0; round < 2; round++) {
    for (let n = 0; n < 300; n++) {
      expect((await sql.raw<{ n: bigint }>(`select ${n} as n`).execute(db)).rows).toEqual([{ n: BigInt(n) }])
    }
  }
})

test("a database in memory needs no file", async () => {
  const store = await openStore({ kind: "sqlite", file: ":memory:" })
  expect(await inTransaction(store, (trx) => saveSetting(trx, "a", 1))).toBe("created")
  await store.close()
})

test("a file that may not grow counts as a database that is away, although SQLite has then rolled back by itself", async () => {
  // In blocks of 512 or 1024 bytes, as the shell counts: enough for the tables, not for all that is posted.
  const script = 'trap "" XFSZ; ulimit -f 1500; exec "$0" "$@"'
  const poster = join(import.meta.dir, "small-file-poster.ts")
  const child = Bun.spawn(["sh", "-c", script, process.execPath, poster, file], { stdout: "pipe" })
  const { posted, error } = JSON.parse(await child.stdout.text())
  expect(posted).toBeGreaterThan(0)
  expect(error).toEqual({ code: "SQLITE_IOERR_WRITE", unavailable: true })
  const store = await open()
  expect(await store.db.selectFrom("ledger").selectAll().execute()).toHaveLength(posted)
})
