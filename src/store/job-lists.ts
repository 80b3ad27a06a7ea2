import { sql } from "kysely"
import type { JobState, VideoJob } from "../core/video-job.ts"
import { jobOf } from "./jobs.ts"
import { jobReference } from "./ledger.ts"
import { milliseconds } from "./save.ts"
import type { Reader } from "./schema.ts"

/** Where a job stands in lists, newest first; several may have been made in the same millisecond. */
export interface JobPlace {
  readonly createdAt: number
  readonly id: string
}

/** An account's job that it has not deleted. */
export async function findJob(db: Reader, accountId: string, id: string): Promise<VideoJob | null> {
  const row = await db
    .selectFrom("jobs")
    .selectAll()
    .where("id", "=", id)
    .where("account_id", "=", accountId)
    .where("hidden", "=", 0n)
    .executeTakeFirst()
  return row === undefined ? null : jobOf(row)
}

/** A job for whoever was given a link to it, unless its account has deleted it. */
export async function findSignedJob(db: Reader, id: string): Promise<VideoJob | null> {
  const row = await db.selectFrom("jobs").selectAll().where("id", "=", id).where("hidden", "=", 0n).executeTakeFirst()
  return row === undefined ? null : jobOf(row)
}

/** An account's jobs that it has not deleted, newest first, from the first one after `before`. */
export async function listJobs(
  db: Reader,
  accountId: string,
  before: JobPlace | null,
  limit: number,
): Promise<readonly VideoJob[]> {
  let query = db
    .selectFrom("jobs")
    .selectAll()
    .where("account_id", "=", accountId)
    .where("hidden", "=", 0n)
    .orderBy("created_at", "desc")
    .orderBy("id", "desc")
    .limit(limit)
  if (before !== null) query = query.where(isAfter(before))
  return (await query.execute()).map(jobOf)
}

function isAfter({ createdAt, id }: JobPlace) {
  return sql<boolean>`(jobs.created_at, jobs.id) < (${milliseconds(createdAt)}, ${id})`
}

/** Deletes a job as far as its account can see; it goes on to its verdict, and the books keep it. False where there is none. */
export async function hideJob(db: Reader, accountId: string, id: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("jobs")
    .set({ hidden: 1n })
    .where("id", "=", id)
    .where("account_id", "=", accountId)
    .where("hidden", "=", 0n)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** A job as the back office sees it. */
export interface JobStory extends VideoJob {
  /** The account's name. */
  readonly account: string
  /** What it did to the balance; null where nothing was charged. */
  readonly line: { readonly amount: bigint; readonly balanceAfter: bigint } | null
}

/** Which jobs a list shows; a field not given takes all. */
export interface JobFilter {
  /** The account's id. */
  readonly account?: string | undefined
  readonly model?: string | undefined
  /** The upstream's name at the time it was sent there. */
  readonly upstream?: string | undefined
  readonly vendor?: string | undefined
  readonly state?: JobState | undefined
  /** Unix milliseconds: created from this time on, and before this time. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

export interface JobAsk extends JobFilter {
  /** The last job that was seen; null: from the newest. */
  readonly before: JobPlace | null
  readonly limit: number
}

/** One job of any account, deleted by it or not. */
export async function findJobForAdmin(db: Reader, id: string): Promise<JobStory | null> {
  const row = await storiesQuery(db).where("jobs.id", "=", id).executeTakeFirst()
  return row === undefined ? null : storyOf(row)
}

/** Jobs of all accounts, deleted by them or not, newest first. */
export async function listJobsBefore(db: Reader, ask: JobAsk): Promise<readonly JobStory[]> {
  const { before, limit, account, model, upstream, vendor, state, since, until } = ask
  let query = storiesQuery(db).orderBy("jobs.created_at", "desc").orderBy("jobs.id", "desc").limit(limit)
  if (before !== null) query = query.where(isAfter(before))
  if (account !== undefined) query = query.where("jobs.account_id", "=", account)
  if (model !== undefined) query = query.where("jobs.model", "=", model)
  if (upstream !== undefined) query = query.where("jobs.upstream", "=", upstream)
  if (vendor !== undefined) query = query.where("jobs.vendor", "=", vendor)
  if (state !== undefined) query = query.where("jobs.state", "=", state)
  if (since !== undefined) query = query.where("jobs.created_at", ">=", milliseconds(since))
  if (until !== undefined) query = query.where("jobs.created_at", "<", milliseconds(until))
  return (await query.execute()).map(storyOf)
}

function storiesQuery(db: Reader) {
  return db
    .selectFrom("jobs")
    .innerJoin("accounts", "accounts.id", "jobs.account_id")
    .leftJoin("ledger", (join) =>
      join
        .on("ledger.reference", "=", sql<string>`${sql.lit(jobReference(""))} || jobs.id`)
        .on("ledger.kind", "=", sql.lit("charge")),
    )
    .selectAll("jobs")
    .select(["accounts.name as account", "ledger.amount", "ledger.balance_after"])
}

type StoryRow = Awaited<ReturnType<ReturnType<typeof storiesQuery>["executeTakeFirstOrThrow"]>>

function storyOf(row: StoryRow): JobStory {
  const { account, amount, balance_after: balanceAfter } = row
  const line = amount === null || balanceAfter === null ? null : { amount, balanceAfter }
  return { ...jobOf(row), account, line }
}
