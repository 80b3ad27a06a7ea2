import { type Selectable, sql } from "kysely"
import type { AppliedPrice } from "../core/price.ts"
import { queryByIds } from "./bulk.ts"
import { StoreConflict, StoreMissing } from "./errors.ts"
import { type MeasuredFor, readMeasured, readPrice } from "./record-json.ts"
import { locksRows, now } from "./save.ts"
import type { LineKind, Reader, Tables, Writer } from "./schema.ts"

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

/** A correction by hand, up or down, which has to say what for. */
export interface Adjustment extends Topup {
  readonly note: string
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

const selectBalances = queryByIds<{ readonly id: string; readonly balance: bigint | null }>(
  (ids) => `select accounts.id, (
      select ledger.balance_after from ledger where ledger.account_id = accounts.id order by ledger.id desc limit 1
    ) as balance from accounts where accounts.id in ${ids}`,
)

/** The balances of those accounts that exist, by their ids, in one query. */
export async function balancesOf(db: Reader, accountIds: readonly string[]): Promise<ReadonlyMap<string, bigint>> {
  const rows = await selectBalances(db, accountIds)
  return new Map(rows.map(({ id, balance }) => [id, balance ?? 0n]))
}

/** Adds money to an account, once per reference however often it is asked for. */
export async function postTopup(trx: Writer, topup: Topup): Promise<Posting> {
  if (topup.amount <= 0n) throw new StoreConflict(`a top-up must be above zero (got ${topup.amount})`)
  return postLine(trx, "topup", topup)
}

/** Puts a balance right in either direction, once per reference however often it is asked for. */
export async function postAdjustment(trx: Writer, adjustment: Adjustment): Promise<Posting> {
  if (adjustment.amount === 0n) throw new StoreConflict("an adjustment must not be zero")
  if (adjustment.note.trim() === "") throw new StoreConflict("an adjustment needs a note that says what it is for")
  return postLine(trx, "adjustment", adjustment)
}

const described: Readonly<Record<LineKind, string>> = {
  topup: "a top-up",
  charge: "a charge",
  adjustment: "an adjustment",
}

async function postLine(trx: Writer, kind: LineKind, line: Topup): Promise<Posting> {
  refuseChargeReference(line.reference)
  const accountId = await lockAccount(trx, line.account)
  const before = await postedBefore(trx, kind, line, accountId)
  if (before !== null) return before
  const balanceAfter = (await balanceOf(trx, accountId)) + line.amount
  refuseOverflow(kind, line, balanceAfter)
  const written = await trx
    .insertInto("ledger")
    .values({
      account_id: accountId,
      kind,
      amount: line.amount,
      balance_after: balanceAfter,
      reference: line.reference,
      note: line.note,
      measured: null,
      created_at: now(),
    })
    .onConflict((conflict) => conflict.column("reference").doNothing())
    .returning("id")
    .executeTakeFirst()
  if (written !== undefined) return { posted: true, balanceAfter }
  // Someone used the reference for another account at this very moment.
  throw referenceTaken(line, "of another account")
}

/** The reference of a video job's charge. */
export function jobReference(jobId: string): string {
  return `video_${jobId}`
}

const jobReferencePattern = /^video_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/** The id of the video job whose charge has this reference; null where no job's charge has it. */
export function jobIdIn(reference: string): string | null {
  return jobReferencePattern.exec(reference)?.[1] ?? null
}

const chargeReferences: readonly { readonly pattern: RegExp; readonly what: string }[] = [
  { pattern: /^req_[0-9a-f]{32}$/, what: "request" },
  { pattern: jobReferencePattern, what: "video job" },
]

/** A charge's reference is made of its request's or job's id: another line of that reference would keep the charge out. */
function refuseChargeReference(reference: string): void {
  const kept = chargeReferences.find(({ pattern }) => pattern.test(reference))
  if (kept === undefined) return
  throw new StoreConflict(
    `the reference ${JSON.stringify(reference)} is kept for the charge of that ${kept.what}; ` +
      `use another, such as "refund:${reference}"`,
  )
}

/** What is left of a balance after a charge for `what`. */
export function balanceAfterCharge(what: string, balance: bigint, charge: bigint): bigint {
  const after = balance - charge
  if (charge < 0n) throw new StoreConflict(`${what}: a charge of ${charge} is below zero`)
  if (charge > largestAmount || after < smallestAmount) {
    throw new StoreConflict(
      `${what}: a charge of ${charge} would take the balance to ${after}, beyond what can be kept`,
    )
  }
  return after
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

async function postedBefore(trx: Writer, kind: LineKind, line: Topup, accountId: string): Promise<Posting | null> {
  const before = await trx
    .selectFrom("ledger")
    .select(["account_id", "kind", "amount", "balance_after"])
    .where("reference", "=", line.reference)
    .executeTakeFirst()
  if (before === undefined) return null
  if (before.account_id !== accountId) throw referenceTaken(line, "of another account")
  if (before.kind !== kind) throw referenceTaken(line, `that is ${described[before.kind]}`)
  if (before.amount !== line.amount) throw referenceTaken(line, `of another amount (${before.amount})`)
  return { posted: false, balanceAfter: before.balance_after }
}

function referenceTaken({ reference }: Topup, what: string): StoreConflict {
  return new StoreConflict(`the reference ${JSON.stringify(reference)} is already used by a ledger line ${what}`)
}

function refuseOverflow(kind: LineKind, line: Topup, balanceAfter: bigint): void {
  for (const value of [line.amount, balanceAfter]) {
    if (value >= smallestAmount && value <= largestAmount) continue
    throw new StoreConflict(
      `${described[kind]} of ${line.amount} would take the balance of account ${JSON.stringify(line.account)} to ` +
        `${balanceAfter}, beyond what can be kept (${smallestAmount} to ${largestAmount})`,
    )
  }
}

/** One line as it is kept for ever. */
export interface LedgerLine {
  readonly id: bigint
  readonly accountId: string
  readonly kind: LineKind
  /** In 1e-9 dollar; charges are below zero. */
  readonly amount: bigint
  readonly balanceAfter: bigint
  readonly reference: string
  readonly note: string | null
  /** Charges only. */
  readonly measured: MeasuredFor | null
  readonly price: AppliedPrice | null
  readonly estimated: boolean
  readonly usageInvalid: boolean
  readonly createdAt: number
}

/** Which lines a list shows; a field not given takes all. */
export interface LedgerFilter {
  /** The account's id. */
  readonly account?: string | undefined
  readonly kind?: LineKind | undefined
  readonly reference?: string | undefined
  /** Unix milliseconds: from this time on, and before this time. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

export interface LedgerAsk extends LedgerFilter {
  /** The id of the last line that was seen; null: from the newest. */
  readonly before: bigint | null
  readonly limit: number
}

/** Lines in the order they were posted, newest first, with the names of their accounts. */
export async function listLedgerBefore(
  db: Reader,
  { before, limit, account, kind, reference, since, until }: LedgerAsk,
): Promise<readonly (LedgerLine & { readonly account: string })[]> {
  let query = db
    .selectFrom("ledger")
    .innerJoin("accounts", "accounts.id", "ledger.account_id")
    .selectAll("ledger")
    .select("accounts.name as account")
    .orderBy("ledger.id", "desc")
    .limit(limit)
  if (before !== null) query = query.where("ledger.id", "<", before)
  if (account !== undefined) query = query.where("ledger.account_id", "=", account)
  if (kind !== undefined) query = query.where("ledger.kind", "=", sql.lit(kind))
  // Said in the words of the partial indexes, or they are not used.
  if (kind !== undefined && kind !== "charge") query = query.where("ledger.kind", "<>", sql.lit("charge"))
  if (reference !== undefined) query = query.where("ledger.reference", "=", reference)
  if (since !== undefined) query = query.where("ledger.created_at", ">=", BigInt(since))
  if (until !== undefined) query = query.where("ledger.created_at", "<", BigInt(until))
  return (await query.execute()).map((row) => ({ ...lineOf(row), account: row.account }))
}

export function lineOf(row: Selectable<Tables["ledger"]>): LedgerLine {
  return {
    id: row.id,
    accountId: row.account_id,
    kind: row.kind,
    amount: row.amount,
    balanceAfter: row.balance_after,
    reference: row.reference,
    note: row.note,
    measured: row.measured === null ? null : readMeasured(row.measured),
    price: row.price === null ? null : readPrice(row.price),
    estimated: row.estimated === 1n,
    usageInvalid: row.usage_invalid === 1n,
    createdAt: Number(row.created_at),
  }
}
