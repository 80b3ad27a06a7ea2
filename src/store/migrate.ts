import { type Kysely, sql } from "kysely"
import { type Migration, Migrator } from "kysely/migration"
import { isMissingTable } from "./errors.ts"
import { migrations } from "./migrations/list.ts"
import type { Engine, Tables } from "./schema.ts"

/** Any number that no other user of the same server locks by; it spells "tollgate" in ASCII. */
const migrationLock = 0x746f6c6c67617465n

export type NamedMigrations = Readonly<Record<string, (engine: Engine) => Migration>>

/**
 * Applies what is missing, all in one transaction. In Postgres the others wait meanwhile, and a process killed half-way
 * leaves neither tables nor lock behind.
 */
export async function migrateToLatest(
  db: Kysely<Tables>,
  engine: Engine,
  list: NamedMigrations = migrations,
): Promise<void> {
  const known = Object.fromEntries(Object.entries(list).map(([name, make]) => [name, make(engine)]))
  await db.transaction().execute(async (trx) => {
    if (engine === "postgres") await sql`select pg_advisory_xact_lock(${sql.lit(migrationLock)})`.execute(trx)
    const migrator = new Migrator({ db: trx, provider: { getMigrations: async () => known } })
    await refuseNewerDatabase(migrator, trx, known)
    const { error } = await migrator.migrateToLatest()
    if (error !== undefined) throw error
  })
}

async function refuseNewerDatabase(
  migrator: Migrator,
  trx: Kysely<Tables>,
  known: Readonly<Record<string, Migration>>,
): Promise<void> {
  const applied = await migrator.getMigrations()
  if (applied.every((migration) => migration.executedAt === undefined)) return
  refuseUnknown(await appliedNames(trx), known)
}

async function appliedNames(db: Kysely<Tables>): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db)
  return rows.map((row) => row.name)
}

function refuseUnknown(applied: readonly string[], known: Readonly<Record<string, unknown>>): void {
  const unknown = applied.filter((name) => known[name] === undefined)
  if (unknown.length === 0) return
  throw new Error(`it was made by a newer version of Tollgate (it has ${unknown.join(", ")}); run that version`)
}

/** For those who only read: refuses a database whose tables are not the ones this version knows. */
export async function refuseOutdated(db: Kysely<Tables>): Promise<void> {
  const applied = await appliedNames(db).catch((error: unknown): readonly string[] => {
    if (isMissingTable(error)) return []
    throw error
  })
  refuseUnknown(applied, migrations)
  const missing = Object.keys(migrations).filter((name) => !applied.includes(name))
  if (missing.length === 0) return
  const trouble =
    applied.length === 0 ? "has no tables of Tollgate" : `is of an older version (no ${missing.join(", ")})`
  throw new Error(`it ${trouble}; start this version of Tollgate on it once`)
}
