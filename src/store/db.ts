import { type Dialect, Kysely, sql, type Transaction } from "kysely"
import { StoreLockedError } from "./errors.ts"
import { migrateToLatest, refuseOutdated } from "./migrate.ts"
import { openPostgres, placeOf } from "./postgres.ts"
import type { Engine, Reader, Tables } from "./schema.ts"
import { openSqlite, openSqliteForReading } from "./sqlite.ts"

export type DatabaseTarget =
  | { readonly kind: "sqlite"; readonly file: string }
  | { readonly kind: "postgres"; readonly url: string }

export interface StoreOptions {
  /** Connections to Postgres at once. */
  readonly poolSize?: number
}

export interface Store {
  readonly engine: Engine
  readonly db: Kysely<Tables>
  ping(): Promise<void>
  close(): Promise<void>
}

/** Opens the database and brings its tables up to date; the caller closes it. */
export async function openStore(target: DatabaseTarget, options: StoreOptions = {}): Promise<Store> {
  const { dialect, release } = openDialect(target, options)
  const db = new Kysely<Tables>({ dialect })
  const close = once(async () => {
    try {
      await db.destroy()
    } finally {
      release()
    }
  })
  try {
    await migrateToLatest(db, target.kind)
  } catch (cause) {
    // The reason for closing says more than anything that closing could complain about.
    await close().catch(() => {})
    throw cannotOpen(target, cause)
  }
  return {
    engine: target.kind,
    db,
    async ping() {
      await sql`select 1`.execute(db)
    },
    close,
  }
}

/** A database that others may be writing to meanwhile. */
export interface ReadOnlyStore {
  readonly engine: Engine
  /** Runs work on the database as it is at this moment, whatever is written to it meanwhile. */
  snapshot<T>(work: (db: Reader) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Opens a database to look at it: claims and changes nothing, so the gateway may be running. Its tables must be up to date. */
export async function openStoreForReading(target: DatabaseTarget): Promise<ReadOnlyStore> {
  const db = new Kysely<Tables>({ dialect: openReadingDialect(target) })
  const close = once(() => db.destroy())
  try {
    await refuseOutdated(db)
  } catch (cause) {
    await close().catch(() => {})
    throw cannotOpen(target, cause)
  }
  return {
    engine: target.kind,
    snapshot: (work) => db.transaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute(work),
    close,
  }
}

/** Runs work as one transaction. Inside it use `trx` only: with SQLite, waiting for `store.db` there would never end. */
export function inTransaction<T>(store: Store, work: (trx: Transaction<Tables>) => Promise<T>): Promise<T> {
  return store.db.transaction().execute(work)
}

function openDialect(target: DatabaseTarget, options: StoreOptions): { dialect: Dialect; release: () => void } {
  try {
    if (target.kind === "sqlite") return openSqlite(target.file)
    return { dialect: openPostgres(target.url, options.poolSize), release() {} }
  } catch (cause) {
    throw cannotOpen(target, cause)
  }
}

function openReadingDialect(target: DatabaseTarget): Dialect {
  try {
    return target.kind === "sqlite" ? openSqliteForReading(target.file) : openPostgres(target.url, 1)
  } catch (cause) {
    throw cannotOpen(target, cause)
  }
}

function cannotOpen(target: DatabaseTarget, cause: unknown): Error {
  if (cause instanceof StoreLockedError) return cause
  const place = target.kind === "sqlite" ? target.file : placeOf(target.url)
  return new Error(`cannot open the database ${place}: ${messageOf(cause)}`, { cause })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => {
    done ??= work()
    return done
  }
}
