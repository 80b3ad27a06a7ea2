import { StoreConflict, StoreMissing } from "./errors.ts"
import { locksRows, now } from "./save.ts"
import type { Reader, Writer } from "./schema.ts"

/** The amounts that a database integer can hold, in 1e-9 dollar. */
export const largestAmount = 2n ** 63n - 1n
export const smallestAmount = -(2n ** 63n)

export interface Topup {
  /** The account's name. */
  readonly account: string
  readonly amount: bigint
  readonly reference: string
  readonly note: string | null
}

export interface Posting {
  /** False where the reference had been posted before, and nothing was written now. */
  readonly posted: boolean
  readonly balanceAfter: bigint
}

/** The account's balance by its id: what its last line says, or nothing. */
export async function balanceOf(db: Reader, accountId: string): Promise<bigint> {
  const line = await db
    .selectFrom("ledger")
    .select("balance_after")
    .where("account_id", "=", accountId)
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst()
  return line?.balance_after ?? 0n
}

/** Adds money to an account, once per reference however often it is asked for. */
export async function postTopup(trx: Writer, topup: Topup): Promise<Posting> {
  const accountId = await lockAccount(trx, topup.account)
  const before = await postedBefore(trx, topup, accountId)
  if (before !== null) return before
  const balanceAfter = (await balanceOf(trx, accountId)) + topup.amount
  refuseOverflow(topup, balanceAfter)
  const line = await trx
    .insertInto("ledger")
    .values({
      account_id: accountId,
      kind: "topup",
      amount: topup.amount,
      balance_after: balanceAfter,
      reference: topup.reference,
      note: topup.note,
      measured: null,
      created_at: now(),
    })
    .onConflict((conflict) => conflict.column("reference").doNothing())
    .returning("id")
    .executeTakeFirst()
  if (line !== undefined) return { posted: true, balanceAfter }
  // Someone used the reference for another account at this very moment.
  throw referenceTaken(topup)
}

/** Lines of one account are written one after the other, each knowing the balance that the one before left. */
async function lockAccount(trx: Writer, name: string): Promise<string> {
  const account = await trx
    .selectFrom("accounts")
    .select("id")
    .where("name", "=", name)
    .$if(locksRows(trx), (query) => query.forNoKeyUpdate())
    .executeTakeFirst()
  if (account === undefined) throw new StoreMissing(`account ${JSON.stringify(name)} does not exist`)
  return account.id
}

async function postedBefore(trx: Writer, topup: Topup, accountId: string): Promise<Posting | null> {
  const line = await trx
    .selectFrom("ledger")
    .select(["account_id", "balance_after"])
    .where("reference", "=", topup.reference)
    .executeTakeFirst()
  if (line === undefined) return null
  if (line.account_id !== accountId) throw referenceTaken(topup)
  return { posted: false, balanceAfter: line.balance_after }
}

function referenceTaken(topup: Topup): StoreConflict {
  const reference = JSON.stringify(topup.reference)
  return new StoreConflict(`the reference ${reference} is already used by a ledger line of another account`)
}

function refuseOverflow(topup: Topup, balanceAfter: bigint): void {
  for (const value of [topup.amount, balanceAfter]) {
    if (value >= smallestAmount && value <= largestAmount) continue
    throw new StoreConflict(
      `a top-up of ${topup.amount} would take the balance of account ${JSON.stringify(topup.account)} to ` +
        `${balanceAfter}, beyond what can be kept (${smallestAmount} to ${largestAmount})`,
    )
  }
}
