/**
 * A process of its own that opens the store given as JSON in its first argument, says "open" and holds it until it is
 * killed. With "slow" as the second argument it gets stuck in the middle of a migration instead, saying "stuck".
 */
import { Kysely, sql } from "kysely"
import { type DatabaseTarget, openStore } from "../../src/store/db.ts"
import { migrateToLatest } from "../../src/store/migrate.ts"
import { migrations } from "../../src/store/migrations/list.ts"
import { openPostgres } from "../../src/store/postgres.ts"
import type { Tables } from "../../src/store/schema.ts"
import { openSqlite } from "../../src/store/sqlite.ts"

const target: DatabaseTarget = JSON.parse(process.argv[2] ?? "")

async function getStuck(): Promise<void> {
  const dialect = target.kind === "sqlite" ? openSqlite(target.file).dialect : openPostgres(target.url)
  await migrateToLatest(new Kysely<Tables>({ dialect }), target.kind, {
    ...migrations,
    "9999-stuck": () => ({
      async up(db: Kysely<unknown>) {
        await sql`create table half_done (a text)`.execute(db)
        console.log("stuck")
        await Bun.sleep(60_000)
      },
    }),
  })
}

try {
  if (process.argv[3] === "slow") await getStuck()
  await openStore(target)
  console.log("open")
  await Bun.sleep(60_000)
} catch (error) {
  console.error(error instanceof Error ? `${error.name}: ${error.message}` : error)
  process.exit(2)
}
