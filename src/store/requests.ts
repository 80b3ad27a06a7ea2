import { type Selectable, sql } from "kysely"
import type { Endpoint } from "../core/endpoints.ts"
import type { RequestRecord } from "../core/request-record.ts"
import type { Ending } from "../core/story.ts"
import { inTransaction, type Store } from "./db.ts"
import { readAttempts, readMeasured, readPrice } from "./record-json.ts"
import type { Reader, Tables } from "./schema.ts"
import { raiseRequestsKeptSince } from "./versions.ts"

export interface StoredRequest extends RequestRecord {
  /** The account's name; null where the account was deleted since. */
  readonly account: string | null
}

/** A request with what it did to the balance. */
export interface RequestStory extends StoredRequest {
  /** Null where nothing was charged. */
  readonly line: { readonly amount: bigint; readonly balanceAfter: bigint } | null
}

/** Which requests a list shows; a field not given takes all. */
export interface RequestFilter {
  /** The account's id. */
  readonly account?: string | undefined
  /** The key's id or name. */
  readonly key?: string | undefined
  readonly model?: string | undefined
  readonly upstream?: string | undefined
  readonly endpoint?: Endpoint | undefined
  readonly status?: number | undefined
  readonly error?: string | undefined
  readonly ending?: Ending | undefined
  /** Unix milliseconds: ended from this time on, and before this time. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/** Where a request stands in the list of all, newest first; several may have ended in the same millisecond. */
export interface RequestPlace {
  readonly endedAt: number
  readonly id: string
}

export interface RequestAsk extends RequestFilter {
  /** The last request that was seen; null: from the newest. */
  readonly before: RequestPlace | null
  readonly limit: number
}

/** Requests by the time they ended, newest first. */
export async function listRequestsBefore(db: Reader, ask: RequestAsk): Promise<readonly StoredRequest[]> {
  const { before, account, key, model, upstream, endpoint, status, error, ending, since, until } = ask
  let query = requestsQuery(db).orderBy("requests.ended_at", "desc").orderBy("requests.id", "desc").limit(ask.limit)
  if (before !== null) {
    query = query.where(sql<boolean>`(requests.ended_at, requests.id) < (${BigInt(before.endedAt)}, ${before.id})`)
  }
  if (account !== undefined) query = query.where("requests.account_id", "=", account)
  if (key !== undefined) {
    query = query.where((where) => where.or([where("requests.key_id", "=", key), where("requests.key_name", "=", key)]))
  }
  if (model !== undefined) query = query.where("requests.model", "=", model)
  if (upstream !== undefined) query = query.where("requests.upstream", "=", upstream)
  if (endpoint !== undefined) query = query.where("requests.endpoint", "=", endpoint)
  if (status !== undefined) query = query.where("requests.status", "=", BigInt(status))
  if (error !== undefined) query = query.where("requests.error", "=", error)
  if (ending !== undefined) query = query.where("requests.ending", "=", ending)
  if (since !== undefined) query = query.where("requests.ended_at", ">=", BigInt(since))
  if (until !== undefined) query = query.where("requests.ended_at", "<", BigInt(until))
  return (await query.execute()).map((row) => ({ ...requestOf(row), account: row.account }))
}

export async function findRequest(db: Reader, id: string): Promise<RequestStory | null> {
  const row = await requestsQuery(db)
    .leftJoin("ledger", (join) =>
      join.onRef("ledger.reference", "=", "requests.id").on("ledger.kind", "=", sql.lit("charge")),
    )
    .select(["ledger.amount", "ledger.balance_after"])
    .where("requests.id", "=", id)
    .executeTakeFirst()
  if (row === undefined) return null
  const { amount, balance_after: balanceAfter, account } = row
  const line = amount === null || balanceAfter === null ? null : { amount, balanceAfter }
  return { ...requestOf(row), account, line }
}

function requestsQuery(db: Reader) {
  return db
    .selectFrom("requests")
    .leftJoin("accounts", "accounts.id", "requests.account_id")
    .selectAll("requests")
    .select("accounts.name as account")
}

export function requestOf(row: Selectable<Tables["requests"]>): RequestRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    keyId: row.key_id,
    keyName: row.key_name,
    endpoint: row.endpoint,
    model: row.model,
    upstream: row.upstream,
    upstreamModel: row.upstream_model,
    stream: row.stream === 1n,
    attempts: readAttempts(row.attempts),
    status: Number(row.status),
    error: row.error,
    ending: row.ending,
    startedAt: Number(row.started_at),
    endedAt: Number(row.ended_at),
    firstTokenMs: row.first_token_ms === null ? null : Number(row.first_token_ms),
    durationMs: Number(row.duration_ms),
    measured: readMeasured(row.measured).measured,
    estimated: row.estimated === 1n,
    usageInvalid: row.usage_invalid === 1n,
    price: row.price === null ? null : readPrice(row.price),
    charge: row.charge,
  }
}

/**
 * Deletes the oldest requests that ended before a time, at most `batch` of them so that nobody waits long, and says how
 * many. Ledger lines and roll-ups stay.
 */
export function deleteRequestsBefore(store: Store, time: number, batch: number): Promise<number> {
  return inTransaction(store, async (trx) => {
    await raiseRequestsKeptSince(trx, time)
    const { numDeletedRows } = await trx
      .deleteFrom("requests")
      .where("id", "in", (oldest) =>
        oldest
          .selectFrom("requests as old")
          .select("old.id")
          .where("old.ended_at", "<", BigInt(time))
          .orderBy("old.ended_at")
          .orderBy("old.id")
          .limit(batch),
      )
      .executeTakeFirst()
    return Number(numDeletedRows)
  })
}
