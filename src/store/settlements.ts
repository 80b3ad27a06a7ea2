import type { RequestRecord } from "../core/request-record.ts"
import { bulkInsert, queryByIds, type SqlValue } from "./bulk.ts"
import { inTransaction, type Store } from "./db.ts"
import { balanceAfterCharge, balancesOf } from "./ledger.ts"
import { writeAttempts, writeMeasured, writePrice } from "./record-json.ts"
import { addUsage, rollUp } from "./rollup.ts"
import { flag, locksRows, milliseconds } from "./save.ts"
import type { Writer } from "./schema.ts"

export interface SettlementOptions {
  /** Some records may be in the books already, because nobody knows how an earlier attempt to post them ended. */
  readonly mayBeKnown: boolean
}

export interface Settlements {
  /** What each account named by a record has now. */
  readonly balances: ReadonlyMap<string, bigint>
  /** Records that could not be posted because their account does not exist any more. */
  readonly orphans: readonly RequestRecord[]
}

/** Names that callers make up may be longer than an index can take; those of the catalog never are. */
const longestModel = 400

/**
 * Posts requests, their charges and what they add to the roll-up in one transaction, in the order given. A record that
 * is in the books already makes the whole of it fail as a duplicate, or is passed over where it may be known.
 */
export function postSettlements(
  store: Store,
  records: readonly RequestRecord[],
  { mayBeKnown }: SettlementOptions,
): Promise<Settlements> {
  return inTransaction(store, async (trx) => {
    const accounts = [...new Set(records.map((record) => record.accountId))]
    // SQLite's transactions keep other writers out as a whole.
    if (locksRows(trx)) await lockAccounts(trx, accounts)
    const balances = new Map(await balancesOf(trx, accounts))
    const orphans = records.filter((record) => !balances.has(record.accountId))
    const known = mayBeKnown ? await knownAmong(trx, records) : null
    const fresh = freshOf(records, balances, known)
    if (fresh.length > 0) await writeAll(trx, fresh, balances)
    return { balances, orphans }
  })
}

const lockAccounts = queryByIds((ids) => `select id from accounts where id in ${ids} order by id for no key update`)

const findKnown = queryByIds<{ readonly id: string }>(
  (ids) => `select id from requests where id in ${ids}
    union select reference as id from ledger where reference in ${ids} and kind = 'charge'`,
)

/** Row and line were written together, but requests are deleted when they are old, and lines are only written for charges. */
async function knownAmong(trx: Writer, records: readonly RequestRecord[]): Promise<Set<string>> {
  const rows = await findKnown(
    trx,
    records.map((record) => record.id),
  )
  return new Set(rows.map((row) => row.id))
}

/** What is to be written; of records with one id the first, where `known` says that there may be such. */
function freshOf(
  records: readonly RequestRecord[],
  balances: ReadonlyMap<string, bigint>,
  known: Set<string> | null,
): readonly RequestRecord[] {
  const fresh: RequestRecord[] = []
  for (const record of records) {
    if (!balances.has(record.accountId) || known?.has(record.id)) continue
    known?.add(record.id)
    fresh.push(storable(record))
  }
  return fresh
}

/** Callers may put anything into the model's name; what a database cannot keep of it must not hold up the books. */
function storable(record: RequestRecord): RequestRecord {
  const { model } = record
  if (model.length <= longestModel && !model.includes("\0")) return record
  return { ...record, model: model.replaceAll("\0", "").slice(0, longestModel) }
}

const insertLines = bulkInsert({
  name: "ledger",
  columns: [
    "account_id",
    "kind",
    "amount",
    "balance_after",
    "reference",
    "measured",
    "price",
    "estimated",
    "usage_invalid",
    "created_at",
  ],
})

const insertRequests = bulkInsert({
  name: "requests",
  columns: [
    "id",
    "account_id",
    "key_id",
    "key_name",
    "endpoint",
    "model",
    "upstream",
    "upstream_model",
    "stream",
    "attempts",
    "status",
    "error",
    "ending",
    "started_at",
    "ended_at",
    "first_token_ms",
    "duration_ms",
    "measured",
    "estimated",
    "usage_invalid",
    "price",
    "charge",
  ],
})

/** Writes records of accounts that exist, and takes their charges off `balances`. */
async function writeAll(trx: Writer, records: readonly RequestRecord[], balances: Map<string, bigint>): Promise<void> {
  const lines: SqlValue[] = []
  const requests: SqlValue[] = []
  for (const record of records) {
    const measured = writeMeasured(record)
    const price = record.price === null ? null : writePrice(record.price)
    if (record.charge !== 0n) pushLine(lines, record, measured, price, charged(balances, record))
    pushRequest(requests, record, measured, price)
  }
  await insertLines(trx, lines)
  await insertRequests(trx, requests)
  await addUsage(trx, "hour", rollUp("hour", records))
  await addUsage(trx, "day", rollUp("day", records))
}

/** The account's balance after the record's charge. */
function charged(balances: Map<string, bigint>, { id, accountId, charge }: RequestRecord): bigint {
  const balance = balanceAfterCharge(`request ${id}`, balances.get(accountId) ?? 0n, charge)
  balances.set(accountId, balance)
  return balance
}

function pushLine(
  lines: SqlValue[],
  record: RequestRecord,
  measured: string,
  price: string | null,
  balanceAfter: bigint,
): void {
  lines.push(
    record.accountId,
    "charge",
    -record.charge,
    balanceAfter,
    record.id,
    measured,
    price,
    flag(record.estimated),
    flag(record.usageInvalid),
    milliseconds(record.endedAt),
  )
}

function pushRequest(requests: SqlValue[], record: RequestRecord, measured: string, price: string | null): void {
  requests.push(
    record.id,
    record.accountId,
    record.keyId,
    record.keyName,
    record.endpoint,
    record.model,
    record.upstream,
    record.upstreamModel,
    flag(record.stream),
    writeAttempts(record.attempts),
    BigInt(record.status),
    record.error,
    record.ending,
    milliseconds(record.startedAt),
    milliseconds(record.endedAt),
    record.firstTokenMs === null ? null : milliseconds(record.firstTokenMs),
    milliseconds(record.durationMs),
    measured,
    flag(record.estimated),
    flag(record.usageInvalid),
    price,
    record.charge,
  )
}
