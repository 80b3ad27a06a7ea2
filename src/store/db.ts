import { type Dialect, Kysely, sql, type Transaction } from "kysely"
import { StoreLockedError } from "./errors.ts"
import { migrateToLatest } from "./migrate.ts"
import { openPostgres, placeOf } from "./postgres.ts"
import type { Engine, Tables } from "./schema.ts"
import { openSqlite } from "./sqlite.ts"

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
