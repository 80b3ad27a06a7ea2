import { type CreateTableBuilder, type Kysely, sql } from "kysely"
import type { Migration } from "kysely/migration"
import type { Engine } from "../schema.ts"

/** The tables as the first release had them. */
export function first(engine: Engine): Migration {
  const make = tableMaker(engine)
  return {
    async up(db: Kysely<unknown>) {
      await makeAccounts(db, make)
      await makeCatalog(db, make)
      await makeLedger(db, make, engine)
      await makeLedgerAppendOnly(db, engine)
    },
  }
}

type Table = CreateTableBuilder<string, string>

interface TableMaker {
  readonly integer: "integer" | "bigint"
  readonly bytes: "blob" | "bytea"
  table(db: Kysely<unknown>, name: string): Table
  dated(table: Table): Table
}

function tableMaker(engine: Engine): TableMaker {
  const sqlite = engine === "sqlite"
  const integer = sqlite ? "integer" : "bigint"
  return {
    integer,
    bytes: sqlite ? "blob" : "bytea",
    table(db, name) {
      const table = db.schema.createTable(name)
      // Strict tables refuse what does not fit; otherwise SQLite would keep an overflowing amount as an inexact real.
      return sqlite ? table.modifyEnd(sql`strict`) : table
    },
    dated: (table) =>
      table
        .addColumn("created_at", integer, (column) => column.notNull())
        .addColumn("updated_at", integer, (column) => column.notNull()),
  }
}

async function makeAccounts(db: Kysely<unknown>, { integer, table, dated }: TableMaker): Promise<void> {
  await dated(
    table(db, "plans")
      .addColumn("id", "text", (column) => column.primaryKey().notNull())
      .addColumn("name", "text", (column) => column.notNull().unique())
      .addColumn("concurrency", integer, (column) => column.notNull())
      .addColumn("models", "text", (column) => column.notNull())
      .addColumn("price_multiplier", "text", (column) => column.notNull()),
  ).execute()
  await dated(
    table(db, "accounts")
      .addColumn("id", "text", (column) => column.primaryKey().notNull())
      .addColumn("name", "text", (column) => column.notNull().unique())
      .addColumn("plan_id", "text", (column) => column.notNull().references("plans.id"))
      .addColumn("concurrency", integer)
      .addColumn("suspended", integer, (column) => column.notNull().defaultTo(0).check(sql`suspended in (0, 1)`)),
  ).execute()
  await dated(
    table(db, "keys")
      .addColumn("id", "text", (column) => column.primaryKey().notNull())
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("digest", "text", (column) => column.notNull().unique())
      .addColumn("prefix", "text", (column) => column.notNull())
      .addColumn("last_four", "text", (column) => column.notNull())
      .addColumn("revoked_at", integer)
      .addUniqueConstraint("keys_account_name", ["account_id", "name"]),
  ).execute()
  await dated(
    table(db, "people")
      .addColumn("id", "text", (column) => column.primaryKey().notNull())
      .addColumn("email", "text", (column) => column.notNull().unique())
      .addColumn("password_hash", "text", (column) => column.notNull())
      .addColumn("role", "text", (column) => column.notNull().check(sql`role in ('admin', 'member')`))
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id")),
  ).execute()
  await db.schema.createIndex("accounts_plan").on("accounts").column("plan_id").execute()
  await db.schema.createIndex("people_account").on("people").column("account_id").execute()
}

async function makeCatalog(db: Kysely<unknown>, { integer, bytes, table, dated }: TableMaker): Promise<void> {
  await dated(
    table(db, "upstreams")
      .addColumn("id", "text", (column) => column.primaryKey().notNull())
      .addColumn("name", "text", (column) => column.notNull().unique())
      .addColumn("vendor", "text", (column) => column.notNull())
      .addColumn("base_url", "text")
      .addColumn("headers", "text", (column) => column.notNull())
      .addColumn("timeouts", "text", (column) => column.notNull())
      .addColumn("concurrency", integer, (column) => column.notNull())
      .addColumn("settings", "text", (column) => column.notNull()),
  ).execute()
  await dated(
    table(db, "upstream_credentials")
      .addColumn("upstream_id", "text", (column) => column.notNull().references("upstreams.id").onDelete("cascade"))
      .addColumn("position", integer, (column) => column.notNull())
      .addColumn("sealed", bytes, (column) => column.notNull())
      .addColumn("digest", "text", (column) => column.notNull())
      .addPrimaryKeyConstraint("upstream_credentials_place", ["upstream_id", "position"]),
  ).execute()
  await dated(
    table(db, "models")
      .addColumn("id", "text", (column) => column.primaryKey().notNull())
      .addColumn("name", "text", (column) => column.notNull().unique())
      .addColumn("price", "text", (column) => column.notNull())
      .addColumn("endpoints", "text"),
  ).execute()
  await dated(
    table(db, "routes")
      .addColumn("model_id", "text", (column) => column.notNull().references("models.id").onDelete("cascade"))
      .addColumn("position", integer, (column) => column.notNull())
      .addColumn("upstream_id", "text", (column) => column.notNull().references("upstreams.id"))
      .addColumn("upstream_model", "text", (column) => column.notNull())
      .addColumn("priority", integer, (column) => column.notNull())
      .addColumn("weight", integer, (column) => column.notNull())
      .addPrimaryKeyConstraint("routes_place", ["model_id", "position"]),
  ).execute()
  await dated(
    table(db, "settings")
      .addColumn("key", "text", (column) => column.primaryKey().notNull())
      .addColumn("value", "text", (column) => column.notNull()),
  ).execute()
  await table(db, "versions")
    .addColumn("name", "text", (column) => column.primaryKey().notNull())
    .addColumn("value", integer, (column) => column.notNull())
    .execute()
  await db.schema.createIndex("routes_upstream").on("routes").column("upstream_id").execute()
  await sql`insert into versions (name, value) values ('catalog', 0)`.execute(db)
}

async function makeLedger(db: Kysely<unknown>, { integer, table }: TableMaker, engine: Engine): Promise<void> {
  await table(db, "ledger")
    .addColumn("id", integer, (column) =>
      // AUTOINCREMENT, so that SQLite never gives a number out twice.
      engine === "sqlite" ? column.primaryKey().autoIncrement() : column.primaryKey().generatedAlwaysAsIdentity(),
    )
    .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
    .addColumn("kind", "text", (column) => column.notNull().check(sql`kind in ('topup', 'charge', 'adjustment')`))
    .addColumn("amount", integer, (column) => column.notNull())
    .addColumn("balance_after", integer, (column) => column.notNull())
    .addColumn("reference", "text", (column) => column.notNull().unique())
    .addColumn("note", "text")
    .addColumn("measured", "text")
    .addColumn("estimated", integer, (column) => column.notNull().defaultTo(0).check(sql`estimated in (0, 1)`))
    .addColumn("created_at", integer, (column) => column.notNull())
    .execute()
  // The balance is the last line of an account.
  await db.schema.createIndex("ledger_account").on("ledger").columns(["account_id", "id"]).execute()
}

async function makeLedgerAppendOnly(db: Kysely<unknown>, engine: Engine): Promise<void> {
  if (engine === "sqlite") {
    await sql`create trigger ledger_no_update before update on ledger
      begin select raise(abort, 'the ledger is append-only'); end`.execute(db)
    await sql`create trigger ledger_no_delete before delete on ledger
      begin select raise(abort, 'the ledger is append-only'); end`.execute(db)
    return
  }
  await sql`create function refuse_ledger_change() returns trigger language plpgsql as
    $$ begin raise exception 'the ledger is append-only'; end $$`.execute(db)
  await sql`create trigger ledger_append_only before update or delete or truncate on ledger
    for each statement execute function refuse_ledger_change()`.execute(db)
}
