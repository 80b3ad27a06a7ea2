import { newId } from "../lib/ids.ts"
import { StoreConflict, StoreMissing } from "./errors.ts"
import { planIdOf } from "./plans.ts"
import { alreadyHas, now, refuseIfUsed, type Saved } from "./save.ts"
import type { Reader, Writer } from "./schema.ts"

export interface AccountFields {
  readonly name: string
  readonly plan: string
  /** Overrides the plan's; 0: unlimited, null: the plan decides. */
  readonly concurrency: number | null
  /** Left as it is where not given. */
  readonly suspended?: boolean
}

export interface Account {
  readonly id: string
  readonly name: string
  readonly plan: string
  readonly concurrency: number | null
  readonly suspended: boolean
  readonly createdAt: number
}

export async function listAccounts(db: Reader): Promise<readonly Account[]> {
  const rows = await db
    .selectFrom("accounts")
    .innerJoin("plans", "plans.id", "accounts.plan_id")
    .select(["accounts.id", "accounts.name", "plans.name as plan", "accounts.concurrency", "accounts.suspended"])
    .select("accounts.created_at")
    .orderBy("accounts.name")
    .execute()
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    plan: row.plan,
    concurrency: row.concurrency === null ? null : Number(row.concurrency),
    suspended: row.suspended === 1n,
    createdAt: Number(row.created_at),
  }))
}

export async function saveAccount(trx: Writer, account: AccountFields): Promise<Saved> {
  const wanted = {
    plan_id: await planIdOf(trx, account.plan, described(account.name)),
    concurrency: account.concurrency === null ? null : BigInt(account.concurrency),
    ...(account.suspended === undefined ? {} : { suspended: account.suspended ? 1n : 0n }),
  }
  const row = await trx.selectFrom("accounts").selectAll().where("name", "=", account.name).executeTakeFirst()
  const time = now()
  if (row === undefined) {
    const columns = { id: newId(), name: account.name, ...wanted, created_at: time, updated_at: time }
    await trx.insertInto("accounts").values(columns).execute()
    return "created"
  }
  if (alreadyHas(row, wanted)) return "unchanged"
  await trx
    .updateTable("accounts")
    .set({ ...wanted, updated_at: time })
    .where("id", "=", row.id)
    .execute()
  return "updated"
}

/** Its keys stay, but no longer open anything. */
export async function suspendAccount(trx: Writer, name: string): Promise<Saved> {
  const row = await trx.selectFrom("accounts").select("suspended").where("name", "=", name).executeTakeFirst()
  if (row === undefined) throw new StoreMissing(`${described(name)} does not exist`)
  if (row.suspended === 1n) return "unchanged"
  await trx.updateTable("accounts").set({ suspended: 1n, updated_at: now() }).where("name", "=", name).execute()
  return "updated"
}

/** Its keys go with it. An account that money ever moved on stays for good. False where there was no such account. */
export async function deleteAccount(trx: Writer, name: string): Promise<boolean> {
  const account = await trx.selectFrom("accounts").select("id").where("name", "=", name).executeTakeFirst()
  if (account === undefined) return false
  const line = await trx.selectFrom("ledger").select("id").where("account_id", "=", account.id).executeTakeFirst()
  if (line !== undefined) {
    throw new StoreConflict(`${described(name)} has lines in the ledger, which is kept; suspend the account instead`)
  }
  const people = await trx
    .selectFrom("people")
    .select("email")
    .where("account_id", "=", account.id)
    .orderBy("email")
    .execute()
  const emails = people.map((person) => person.email)
  refuseIfUsed(described(name), "person", emails)
  await trx.deleteFrom("accounts").where("id", "=", account.id).execute()
  return true
}

export async function accountIdOf(db: Reader, name: string, wantedBy: string): Promise<string> {
  const account = await db.selectFrom("accounts").select("id").where("name", "=", name).executeTakeFirst()
  if (account === undefined) throw new StoreMissing(`${wantedBy}: ${described(name)} does not exist`)
  return account.id
}

function described(name: string): string {
  return `account ${JSON.stringify(name)}`
}
