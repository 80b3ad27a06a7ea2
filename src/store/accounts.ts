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

export interface AccountWithBalance extends Account {
  /** In 1e-9 dollar. */
  readonly balance: bigint
}

/** What accounts must have to be in a list; a field not given takes all. */
export interface AccountFilter {
  readonly name?: string | undefined
  readonly plan?: string | undefined
  readonly suspended?: boolean | undefined
}

export async function listAccounts(db: Reader): Promise<readonly Account[]> {
  const rows = await accountsQuery(db).orderBy("accounts.name").execute()
  return rows.map(accountOf)
}

/** Up to `limit` accounts in the order of their names, from the first one after the name `after`, in one query. */
export async function listAccountsAfter(
  db: Reader,
  after: string | null,
  limit: number,
  { name, plan, suspended }: AccountFilter = {},
): Promise<readonly AccountWithBalance[]> {
  let query = balancesQuery(db).orderBy("accounts.name").limit(limit)
  if (after !== null) query = query.where("accounts.name", ">", after)
  if (name !== undefined) query = query.where("accounts.name", "=", name)
  if (plan !== undefined) query = query.where("plans.name", "=", plan)
  if (suspended !== undefined) query = query.where("accounts.suspended", "=", suspended ? 1n : 0n)
  return (await query.execute()).map(withBalance)
}

/** The account of this id or else of this name. */
export async function findAccount(db: Reader, idOrName: string): Promise<AccountWithBalance | null> {
  const rows = await balancesQuery(db)
    .where((where) => where.or([where("accounts.id", "=", idOrName), where("accounts.name", "=", idOrName)]))
    .execute()
  const row = rows.find(({ id }) => id === idOrName) ?? rows[0]
  return row === undefined ? null : withBalance(row)
}

function accountsQuery(db: Reader) {
  return db
    .selectFrom("accounts")
    .innerJoin("plans", "plans.id", "accounts.plan_id")
    .select(["accounts.id", "accounts.name", "plans.name as plan", "accounts.concurrency", "accounts.suspended"])
    .select("accounts.created_at")
}

function balancesQuery(db: Reader) {
  return accountsQuery(db).select((select) =>
    select
      .selectFrom("ledger")
      .select("ledger.balance_after")
      .whereRef("ledger.account_id", "=", "accounts.id")
      .orderBy("ledger.id", "desc")
      .limit(1)
      .as("balance"),
  )
}

type AccountRow = Awaited<ReturnType<ReturnType<typeof accountsQuery>["executeTakeFirstOrThrow"]>>

function accountOf(row: AccountRow): Account {
  return {
    id: row.id,
    name: row.name,
    plan: row.plan,
    concurrency: row.concurrency === null ? null : Number(row.concurrency),
    suspended: row.suspended === 1n,
    createdAt: Number(row.created_at),
  }
}

function withBalance(row: AccountRow & { readonly balance: bigint | null }): AccountWithBalance {
  return { ...accountOf(row), balance: row.balance ?? 0n }
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

/** Its keys go with it. An account that money ever moved on, or that has video jobs, stays for good. False where there was no such account. */
export async function deleteAccount(trx: Writer, name: string): Promise<boolean> {
  const account = await trx.selectFrom("accounts").select("id").where("name", "=", name).executeTakeFirst()
  if (account === undefined) return false
  const line = await trx.selectFrom("ledger").select("id").where("account_id", "=", account.id).executeTakeFirst()
  if (line !== undefined) {
    throw new StoreConflict(`${described(name)} has lines in the ledger, which is kept; suspend the account instead`)
  }
  const job = await trx.selectFrom("jobs").select("id").where("account_id", "=", account.id).executeTakeFirst()
  if (job !== undefined) {
    throw new StoreConflict(`${described(name)} has video jobs, which are kept; suspend the account instead`)
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
