import { sql } from "kysely"
import { type Reconciled, reconcile } from "../../src/billing/reconcile.ts"
import { type DatabaseTarget, openStoreForReading, type Store } from "../../src/store/db.ts"
import { booksIn } from "../../src/store/reconcile-reads.ts"
import type { Engine } from "../../src/store/schema.ts"

export interface Looked extends Reconciled {
  readonly told: readonly string[]
}

/** Reconciles as the command does, over a connection of its own. */
export async function look(target: DatabaseTarget): Promise<Looked> {
  const reader = await openStoreForReading(target)
  const told: string[] = []
  try {
    return await reader.snapshot(async (db) => {
      const reconciled = await reconcile(await booksIn(db), (difference) => told.push(difference))
      return { ...reconciled, told }
    })
  } finally {
    await reader.close()
  }
}

/** Does to the books what the database itself would refuse. */
export async function spoilBooks(store: Store, statements: readonly string[]): Promise<void> {
  const unlocking: Readonly<Record<Engine, readonly string[]>> = {
    sqlite: ["drop trigger ledger_no_update", "drop trigger ledger_no_delete", "pragma foreign_keys = off"],
    postgres: [
      "drop trigger ledger_append_only on ledger",
      "alter table ledger drop constraint ledger_account_id_fkey",
    ],
  }
  for (const statement of [...unlocking[store.engine], ...statements]) await sql.raw(statement).execute(store.db)
}
