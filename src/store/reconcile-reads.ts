import { type Selectable, sql } from "kysely"
import type { Measured } from "../core/measured.ts"
import type { RequestRecord } from "../core/request-record.ts"
import type { JobState, VideoJob } from "../core/video-job.ts"
import { queryByIds } from "./bulk.ts"
import { type LedgerLine, lineOf } from "./ledger.ts"
import { requestOf } from "./requests.ts"
import type { UsageSpan } from "./rollup.ts"
import { type Reader, type Tables, type UsageCounter, usageCounters } from "./schema.ts"
import { requestsKeptSince } from "./versions.ts"

/*
 * Everything in the books, page by page and in a fixed order, for those who add it all up again. Inside the snapshot of
 * a `ReadOnlyStore` the pages belong together, however long the reading takes.
 */

const rowsPerPage = 1000

/** Everything in the books at one moment. */
export interface Books {
  /** The names of all accounts, by their ids. */
  readonly accounts: ReadonlyMap<string, string>
  /** Requests that ended before this time may have been deleted; Unix milliseconds. */
  readonly requestsKeptSince: number
  lines(): AsyncIterable<FoundLine>
  requests(): AsyncIterable<FoundRequest>
  jobs(): AsyncIterable<FoundJob>
  usage(span: UsageSpan): AsyncIterable<StoredUsage>
  /** Those of the ids that are kept requests. */
  requestsAmong(ids: readonly string[]): Promise<ReadonlySet<string>>
  /** The states of those of the ids that are video jobs, by their ids. */
  jobsAmong(ids: readonly string[]): Promise<ReadonlyMap<string, JobState>>
  /** The charges that have one of these references. */
  chargesAmong(references: readonly string[]): Promise<readonly PostedCharge[]>
}

/** A row whose JSON someone has spoilt is still there to be told of; what could not be read of it is empty. */
interface Found {
  /** Why not all of it could be read. */
  readonly unreadable?: string
}

export interface FoundLine extends LedgerLine, Found {}
export interface FoundRequest extends RequestRecord, Found {}

/** What the books say of a video job. */
export type FoundJob = Pick<VideoJob, "id" | "accountId" | "state" | "charge">

export interface PostedCharge {
  /** The line's id. */
  readonly id: bigint
  readonly accountId: string
  readonly reference: string
  readonly amount: bigint
}

/** The books that a snapshot shows, for as long as it lasts. */
export async function booksIn(db: Reader): Promise<Books> {
  const accounts = await db.selectFrom("accounts").select(["id", "name"]).execute()
  return {
    accounts: new Map(accounts.map(({ id, name }) => [id, name])),
    requestsKeptSince: await requestsKeptSince(db),
    lines: () => allLines(db),
    requests: () => allRequests(db),
    jobs: () => allJobs(db),
    usage: (span) => allUsage(db, span),
    requestsAmong: async (ids) => new Set((await selectRequests(db, ids)).map(({ id }) => id)),
    jobsAmong: async (ids) => new Map((await selectJobs(db, ids)).map(({ id, state }) => [id, state])),
    chargesAmong: (references) => selectCharges(db, references),
  }
}

const selectRequests = queryByIds<{ readonly id: string }>((ids) => `select id from requests where id in ${ids}`)

const selectJobs = queryByIds<Pick<FoundJob, "id" | "state">>((ids) => `select id, state from jobs where id in ${ids}`)

const selectCharges = queryByIds<PostedCharge>(
  (ids) => `select id, account_id as "accountId", reference, amount from ledger
    where reference in ${ids} and kind = 'charge' order by id`,
)

/** All ledger lines, account by account, each account's in the order they were posted. */
export async function* allLines(db: Reader): AsyncGenerator<FoundLine> {
  let last: FoundLine | undefined
  for (;;) {
    let query = db.selectFrom("ledger").selectAll().orderBy("account_id").orderBy("id").limit(rowsPerPage)
    if (last !== undefined) query = query.where(sql<boolean>`(account_id, id) > (${last.accountId}, ${last.id})`)
    const lines = (await query.execute()).map(foundLine)
    yield* lines
    last = lines.at(-1)
    if (last === undefined || lines.length < rowsPerPage) return
  }
}

/** All requests that are still kept, by their ids. */
export async function* allRequests(db: Reader): AsyncGenerator<FoundRequest> {
  let last: FoundRequest | undefined
  for (;;) {
    let query = db.selectFrom("requests").selectAll().orderBy("id").limit(rowsPerPage)
    if (last !== undefined) query = query.where("id", ">", last.id)
    const requests = (await query.execute()).map(foundRequest)
    yield* requests
    last = requests.at(-1)
    if (last === undefined || requests.length < rowsPerPage) return
  }
}

/** All video jobs, by their ids. */
async function* allJobs(db: Reader): AsyncGenerator<FoundJob> {
  let last: FoundJob | undefined
  for (;;) {
    let query = db
      .selectFrom("jobs")
      .select(["id", "account_id as accountId", "state", "charge"])
      .orderBy("id")
      .limit(rowsPerPage)
    if (last !== undefined) query = query.where("id", ">", last.id)
    const jobs: readonly FoundJob[] = await query.execute()
    yield* jobs
    last = jobs.at(-1)
    if (last === undefined || jobs.length < rowsPerPage) return
  }
}

function foundLine(row: Selectable<Tables["ledger"]>): FoundLine {
  try {
    const line = lineOf(row)
    if (line.measured === null) return line
    if (typeof line.measured.model !== "string") throw new TypeError("no model is named")
    refuseUnsound(line.measured.measured)
    return line
  } catch (error) {
    return { ...lineOf({ ...row, measured: null, price: null }), unreadable: messageOf(error) }
  }
}

function foundRequest(row: Selectable<Tables["requests"]>): FoundRequest {
  try {
    const request = requestOf(row)
    refuseUnsound(request.measured)
    return request
  } catch (error) {
    return { ...requestOf({ ...row, attempts: "[]", measured: "{}", price: null }), unreadable: messageOf(error) }
  }
}

/** JSON that can be read may still hold what nobody measures. */
function refuseUnsound({ tokens, images, microseconds, characters, searchUnits }: Measured): void {
  const quantities = [images, microseconds, characters, searchUnits]
  if (tokens !== null) {
    quantities.push(tokens.input, tokens.cachedInput, tokens.cacheWrite, tokens.audioInput)
    quantities.push(tokens.output, tokens.reasoning, tokens.audioOutput)
  }
  for (const quantity of quantities) {
    if (quantity === null || (Number.isSafeInteger(quantity) && quantity >= 0)) continue
    throw new RangeError(`${JSON.stringify(quantity)} is no quantity`)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
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
