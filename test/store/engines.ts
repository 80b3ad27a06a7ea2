import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { saveAccount } from "../../src/store/accounts.ts"
import type { DatabaseTarget, Store } from "../../src/store/db.ts"
import { inTransaction, openStore } from "../../src/store/db.ts"
import { savePlan } from "../../src/store/plans.ts"
import type { Engine } from "../../src/store/schema.ts"
import { startPostgres } from "../support/postgres.ts"

export const engines: readonly Engine[] = ["sqlite", "postgres"]

/** Starting a server may have to install one first. */
export const slowStart = 120_000

export interface FreshDatabase {
  readonly target: DatabaseTarget
  remove(): void
}

export async function freshDatabase(engine: Engine): Promise<FreshDatabase> {
  if (engine === "postgres") {
    const server = await startPostgres()
    return { target: { kind: "postgres", url: await server.freshDatabase() }, remove() {} }
  }
  const folder = mkdtempSync(join(tmpdir(), "tollgate-store-"))
  return {
    target: { kind: "sqlite", file: join(folder, "tollgate.db") },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export interface FreshStore {
  readonly store: Store
  close(): Promise<void>
}

export async function freshStore(engine: Engine): Promise<FreshStore> {
  const database = await freshDatabase(engine)
  const store = await openStore(database.target)
  return {
    store,
    async close() {
      await store.close()
      database.remove()
    },
  }
}

export const defaultPlan = { name: "default", concurrency: 50, models: ["*"], priceMultiplier: "1" }

/** An account on the default plan, for tests about something else. */
export async function giveAccount(store: Store, name: string): Promise<void> {
  await inTransaction(store, async (trx) => {
    await savePlan(trx, defaultPlan)
    await saveAccount(trx, { name, plan: defaultPlan.name, concurrency: null })
  })
}
