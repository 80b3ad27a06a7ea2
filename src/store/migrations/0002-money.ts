import { type CreateTableBuilder, type Kysely, sql } from "kysely"
import type { Migration } from "kysely/migration"
import type { Engine } from "../schema.ts"

/** The books: what each charge was made by, every request, and what was used in each hour and day. */
export function money(engine: Engine): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema.alterTable("models").addColumn("tokenizer", "text").execute()
      await extendLedger(db, engine)
      await makeRequests(db, engine)
      await makeUsage(db, engine, "usage_hours", "hour")
      await makeUsage(db, engine, "usage_days", "day")
    },
  }
}

type Integer = "integer" | "bigint"

function integerOf(engine: Engine): Integer {
  return engine === "sqlite" ? "integer" : "bigint"
}

async function extendLedger(db: Kysely<unknown>, engine: Engine): Promise<void> {
  await db.schema.alterTable("ledger").addColumn("price", "text").execute()
  await db.schema
    .alterTable("ledger")
    .addColumn("usage_invalid", integerOf(engine), (column) =>
      column.notNull().defaultTo(0).check(sql`usage_invalid in (0, 1)`),
    )
    .execute()
  // Among many charges the few other lines are found without looking at all; a charge costs these indexes nothing.
  await sql`create index ledger_kind on ledger (kind, id) where kind <> 'charge'`.execute(db)
  await sql`create index ledger_account_kind on ledger (account_id, kind, id) where kind <> 'charge'`.execute(db)
}

async function makeRequests(db: Kysely<unknown>, engine: Engine): Promise<void> {
  const integer = integerOf(engine)
  const table = db.schema
    .createTable("requests")
    .addColumn("id", "text", (column) => column.primaryKey().notNull())
    // Accounts and keys may be deleted while what they did is still kept, so nothing here refers to them.
    .addColumn("account_id", "text", (column) => column.notNull())
    .addColumn("key_id", "text", (column) => column.notNull())
    .addColumn("key_name", "text", (column) => column.notNull())
    .addColumn("endpoint", "text", (column) => column.notNull())
    .addColumn("model", "text", (column) => column.notNull())
    .addColumn("upstream", "text")
    .addColumn("upstream_model", "text")
    .addColumn("stream", integer, (column) => column.notNull())
    .addColumn("attempts", "text", (column) => column.notNull())
    .addColumn("status", integer, (column) => column.notNull())
    .addColumn("error", "text")
    .addColumn("ending", "text", (column) => column.notNull())
    .addColumn("started_at", integer, (column) => column.notNull())
    .addColumn("ended_at", integer, (column) => column.notNull())
    .addColumn("first_token_ms", integer)
    .addColumn("duration_ms", integer, (column) => column.notNull())
    .addColumn("measured", "text", (column) => column.notNull())
    .addColumn("estimated", integer, (column) => column.notNull())
    .addColumn("usage_invalid", integer, (column) => column.notNull())
    .addColumn("price", "text")
    .addColumn("charge", integer, (column) => column.notNull())
  await (engine === "sqlite" ? table.modifyEnd(sql`strict`) : table).execute()
  await db.schema.createIndex("requests_ended").on("requests").columns(["ended_at", "id"]).execute()
  for (const by of ["account_id", "model", "upstream"]) {
    await db.schema.createIndex(`requests_${by}`).on("requests").columns([by, "ended_at", "id"]).execute()
  }
  await sql`insert into versions (name, value) values ('requests_kept_since', 0)`.execute(db)
}

const counters = [
  "requests",
  "failures",
  "estimated",
  "input_tokens",
  "cached_input_tokens",
  "cache_write_tokens",
  "audio_input_tokens",
  "output_tokens",
  "reasoning_tokens",
  "audio_output_tokens",
  "images",
  "microseconds",
  "characters",
  "charge",
  "duration_ms",
  "first_token_ms",
  "first_tokens",
]

async function makeUsage(db: Kysely<unknown>, engine: Engine, name: string, span: string): Promise<void> {
  const integer = integerOf(engine)
  let table: CreateTableBuilder<string, string> = db.schema
    .createTable(name)
    .addColumn(span, integer, (column) => column.notNull())
    .addColumn("account_id", "text", (column) => column.notNull())
    .addColumn("model", "text", (column) => column.notNull())
    .addColumn("upstream", "text", (column) => column.notNull())
  for (const counter of counters) table = table.addColumn(counter, integer, (column) => column.notNull())
  table = table.addPrimaryKeyConstraint(`${name}_place`, [span, "account_id", "model", "upstream"])
  await (engine === "sqlite" ? table.modifyEnd(sql`strict, without rowid`) : table).execute()
  await db.schema.createIndex(`${name}_account`).on(name).columns(["account_id", span]).execute()
}
