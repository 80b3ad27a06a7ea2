import { sql } from "kysely"
import type { RequestRecord } from "../core/request-record.ts"
import { type LedgerLine, lineOf } from "./ledger.ts"
import { requestOf } from "./requests.ts"
import type { UsageSpan } from "./rollup.ts"
import { type Reader, type UsageCounter, usageCounters } from "./schema.ts"

/*
 * Everything in the books, page by page and in a fixed order, for those who add it all up again. Inside the snapshot of
 * a `ReadOnlyStore` the pages belong together, however long the reading takes.
 */

const rowsPerPage = 1000

/** All ledger lines, account by account, each account's in the order they were posted. */
export async function* allLines(db: Reader): AsyncGenerator<LedgerLine> {
  let last: LedgerLine | undefined
  for (;;) {
    let query = db.selectFrom("ledger").selectAll().orderBy("account_id").orderBy("id").limit(rowsPerPage)
    if (last !== undefined) query = query.where(sql<boolean>`(account_id, id) > (${last.accountId}, ${last.id})`)
    const lines = (await query.execute()).map(lineOf)
    yield* lines
    last = lines.at(-1)
    if (last === undefined || lines.length < rowsPerPage) return
  }
}

/** All requests that are still kept, by their ids. */
export async function* allRequests(db: Reader): AsyncGenerator<RequestRecord> {
  let last: RequestRecord | undefined
  for (;;) {
    let query = db.selectFrom("requests").selectAll().orderBy("id").limit(rowsPerPage)
    if (last !== undefined) query = query.where("id", ">", last.id)
    const requests = (await query.execute()).map(requestOf)
    yield* requests
    last = requests.at(-1)
    if (last === undefined || requests.length < rowsPerPage) return
  }
}

/** One row of a roll-up. */
export interface StoredUsage {
  /** Hours or days since 1970. */
  readonly time: number
  readonly accountId: string
  readonly model: string
  /** "" where none was asked. */
  readonly upstream: string
  readonly sums: Readonly<Record<UsageCounter, bigint>>
}

type UsageSqlRow = Record<UsageCounter, bigint> & {
  readonly time: bigint
  readonly account_id: string
  readonly model: string
  readonly upstream: string
}

const counters = sql.join(usageCounters.map((counter) => sql.id(counter)))

/** All rows of a roll-up, by time, account id, model and upstream. */
export async function* allUsage(db: Reader, span: UsageSpan): AsyncGenerator<StoredUsage> {
  const time = sql.id(span)
  const place = sql`(${time}, account_id, model, upstream)`
  let last: StoredUsage | undefined
  for (;;) {
    const rest: typeof place =
      last === undefined
        ? sql``
        : sql`where ${place} > (${BigInt(last.time)}, ${last.accountId}, ${last.model}, ${last.upstream})`
    const { rows } = await sql<UsageSqlRow>`select ${time} as time, account_id, model, upstream, ${counters}
      from ${sql.table(span === "hour" ? "usage_hours" : "usage_days")} ${rest}
      order by ${time}, account_id, model, upstream limit ${sql.lit(rowsPerPage)}`.execute(db)
    const usage = rows.map(usageOf)
    yield* usage
    last = usage.at(-1)
    if (last === undefined || usage.length < rowsPerPage) return
  }
}

function usageOf({ time, account_id, model, upstream, ...sums }: UsageSqlRow): StoredUsage {
  return { time: Number(time), accountId: account_id, model, upstream, sums }
}
