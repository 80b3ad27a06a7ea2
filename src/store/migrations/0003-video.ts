import { type Kysely, sql } from "kysely"
import type { Migration } from "kysely/migration"
import type { Engine } from "../schema.ts"

/** Video jobs. */
export function video(engine: Engine): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await makeJobs(db, engine)
      await indexJobs(db)
    },
  }
}

/** What every look reads stands first: SQLite reads a row from its beginning. */
async function makeJobs(db: Kysely<unknown>, engine: Engine): Promise<void> {
  const integer = engine === "sqlite" ? "integer" : "bigint"
  const table = db.schema
    .createTable("jobs")
    .addColumn("id", "text", (column) => column.primaryKey().notNull())
    .addColumn("state", "text", (column) =>
      column.notNull().check(sql`state in ('submitting', 'queued', 'in_progress', 'completed', 'failed')`),
    )
    .addColumn("next_look_at", integer, (column) => column.notNull())
    .addColumn("lease_until", integer)
    .addColumn("lease_owner", "text")
    .addColumn("fence", integer, (column) => column.notNull())
    .addColumn("polls", integer, (column) => column.notNull().defaultTo(0))
    .addColumn("last_look_at", integer)
    .addColumn("missing_since", integer)
    .addColumn("hidden", integer, (column) => column.notNull().defaultTo(0).check(sql`hidden in (0, 1)`))
    .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
    .addColumn("created_at", integer, (column) => column.notNull())
    .addColumn("submitted_at", integer)
    .addColumn("finished_at", integer)
    // Keys, upstreams and models may be deleted or renamed while their jobs go on, so nothing here refers to them.
    .addColumn("key_id", "text", (column) => column.notNull())
    .addColumn("key_name", "text", (column) => column.notNull())
    .addColumn("request_id", "text", (column) => column.notNull())
    .addColumn("model", "text", (column) => column.notNull())
    .addColumn("with_image", integer, (column) => column.notNull())
    .addColumn("upstream_id", "text", (column) => column.notNull())
    .addColumn("upstream", "text", (column) => column.notNull())
    .addColumn("vendor", "text", (column) => column.notNull())
    .addColumn("upstream_model", "text", (column) => column.notNull())
    .addColumn("base_url", "text", (column) => column.notNull())
    .addColumn("credential_digest", "text")
    .addColumn("sent_seconds", integer)
    .addColumn("vendor_id", "text")
    .addColumn("microseconds", integer)
    .addColumn("seconds_source", "text")
    .addColumn("charge", integer, (column) => column.notNull().defaultTo(0).check(sql`charge >= 0`))
    .addColumn("result_needs_credential", integer, (column) => column.notNull().defaultTo(0))
    .addColumn("result_kept", integer, (column) => column.notNull().defaultTo(0))
    .addColumn("trouble", "text")
    .addColumn("error", "text")
    .addColumn("price", "text")
    .addColumn("tariff", "text", (column) => column.notNull())
    .addColumn("ref", "text")
    .addColumn("result_url", "text")
    .addColumn("attempts", "text", (column) => column.notNull())
  // Room on every page of Postgres lets a claim, which changes nothing that is indexed, leave the indexes alone.
  await (engine === "sqlite" ? table.modifyEnd(sql`strict`) : table.modifyEnd(sql`with (fillfactor = 70)`)).execute()
}

async function indexJobs(db: Kysely<unknown>): Promise<void> {
  await sql`create index jobs_due on jobs (upstream_id, next_look_at)
    where state not in ('completed', 'failed')`.execute(db)
  await db.schema.createIndex("jobs_account").on("jobs").columns(["account_id", "created_at", "id"]).execute()
  await db.schema.createIndex("jobs_created").on("jobs").columns(["created_at", "id"]).execute()
}
