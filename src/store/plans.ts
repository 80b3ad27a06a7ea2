import type { Selectable } from "kysely"
import type { Plan } from "../core/catalog.ts"
import { newId } from "../lib/ids.ts"
import { StoreMissing } from "./errors.ts"
import { alreadyHas, now, refuseIfUsed, type Saved } from "./save.ts"
import type { Reader, Tables, Writer } from "./schema.ts"

export async function listPlans(db: Reader): Promise<readonly Plan[]> {
  const rows = await db.selectFrom("plans").selectAll().orderBy("name").execute()
  return rows.map(planOf)
}

export async function savePlan(trx: Writer, plan: Plan): Promise<Saved> {
  const wanted = {
    concurrency: BigInt(plan.concurrency),
    models: JSON.stringify(plan.models),
    price_multiplier: plan.priceMultiplier,
  }
  const row = await trx.selectFrom("plans").selectAll().where("name", "=", plan.name).executeTakeFirst()
  const time = now()
  if (row === undefined) {
    const columns = { id: newId(), name: plan.name, ...wanted, created_at: time, updated_at: time }
    await trx.insertInto("plans").values(columns).execute()
    return "created"
  }
  if (alreadyHas(row, wanted)) return "unchanged"
  await trx
    .updateTable("plans")
    .set({ ...wanted, updated_at: time })
    .where("id", "=", row.id)
    .execute()
  return "updated"
}

/** False where there was no such plan. */
export async function deletePlan(trx: Writer, name: string): Promise<boolean> {
  const accounts = await trx
    .selectFrom("accounts")
    .innerJoin("plans", "plans.id", "accounts.plan_id")
    .select("accounts.name")
    .where("plans.name", "=", name)
    .orderBy("accounts.name")
    .execute()
  const users = accounts.map((account) => account.name)
  refuseIfUsed(`plan ${JSON.stringify(name)}`, "account", users)
  const { numDeletedRows } = await trx.deleteFrom("plans").where("name", "=", name).executeTakeFirst()
  return numDeletedRows > 0n
}

export async function planIdOf(db: Reader, name: string, wantedBy: string): Promise<string> {
  const plan = await db.selectFrom("plans").select("id").where("name", "=", name).executeTakeFirst()
  if (plan === undefined) throw new StoreMissing(`${wantedBy}: plan ${JSON.stringify(name)} does not exist`)
  return plan.id
}

function planOf(row: Selectable<Tables["plans"]>): Plan {
  return {
    name: row.name,
    concurrency: Number(row.concurrency),
    models: JSON.parse(row.models),
    priceMultiplier: row.price_multiplier,
  }
}
