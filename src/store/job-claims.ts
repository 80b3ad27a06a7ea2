import { sql } from "kysely"
import type { JsonValue } from "../core/json.ts"
import type { VideoJob } from "../core/video-job.ts"
import type { Store } from "./db.ts"
import { isOpen, type JobRow, jobOf, plainText, unclaimed, writeRef } from "./jobs.ts"
import { engineOf, milliseconds } from "./save.ts"
import type { Engine, Reader } from "./schema.ts"
import { transactTogether } from "./shared-commits.ts"

/*
 * How instances share the work of asking after jobs. A claim gives a job to one of them for a while and raises the job's
 * fence, so that one that was paused for longer than that finds its later writes refused.
 */

export interface ClaimAsk {
  readonly owner: string
  readonly now: number
  readonly leaseUntil: number
  readonly upstreamId: string
  readonly limit: number
}

/** Claims jobs of one upstream that are due and nobody's, those first that have waited longest. */
export async function claimDue(store: Store, ask: ClaimAsk): Promise<readonly VideoJob[]> {
  const now = milliseconds(ask.now)
  // Instances step around the rows that others are claiming; in SQLite there is one writer at a time.
  const aside = sql.raw(store.engine === "postgres" ? "for no key update skip locked" : "")
  const claim = sql<JobRow>`with due as materialized (
      select jobs.id from jobs
      where jobs.upstream_id = ${ask.upstreamId} and ${isOpen} and jobs.next_look_at <= ${now} and ${isFree(now)}
      order by jobs.next_look_at limit ${BigInt(ask.limit)} ${aside}
    )
    update jobs set fence = fence + 1, lease_owner = ${ask.owner}, lease_until = ${milliseconds(ask.leaseUntil)}
    where id in (select id from due) returning *`
  const { rows } = await transactTogether(store, (db) => claim.execute(db))
  return rows.map(jobOf).sort((a, b) => a.nextLookAt - b.nextLookAt)
}

function isFree(now: bigint) {
  return sql<boolean>`(jobs.lease_until is null or jobs.lease_until <= ${now})`
}

/** Upstreams with open jobs, found by leaping through the index of due jobs instead of walking over every job in it. */
const openUpstreams = sql`open_upstreams (id) as (
    select (select jobs.upstream_id from jobs where ${isOpen} order by jobs.upstream_id limit 1)
    union all
    select (
      select jobs.upstream_id from jobs where ${isOpen} and jobs.upstream_id > open_upstreams.id
      order by jobs.upstream_id limit 1
    ) from open_upstreams where open_upstreams.id is not null
  )`

/** Counting further would take longer than it tells. */
const mostCounted = 1000

/** How many jobs could be claimed now, up to a thousand, by the upstream's id; upstreams without such jobs are not in it. */
export async function dueUpstreams(db: Reader, now: number): Promise<ReadonlyMap<string, number>> {
  const time = milliseconds(now)
  const { rows } = await sql<{ id: string; due: bigint }>`with recursive ${openUpstreams}
    select id, due from (
      select open_upstreams.id, (
        select count(*) from (
          select 1 from jobs
          where jobs.upstream_id = open_upstreams.id and ${isOpen} and jobs.next_look_at <= ${time} and ${isFree(time)}
          limit ${sql.lit(mostCounted)}
        ) as claimable
      ) as due from open_upstreams where open_upstreams.id is not null
    ) as counted where due > 0`.execute(db)
  return new Map(rows.map(({ id, due }) => [id, Number(due)]))
}

/** What asking after a claimed job has told, where that was no verdict. */
export interface Look {
  readonly id: string
  readonly fence: number
  /** A job that is `in_progress` stays so, and one that is `submitting` does without a `ref` that says it was taken. */
  readonly state: "queued" | "in_progress"
  /** Left as it is where not given. */
  readonly ref?: JsonValue | undefined
  readonly vendorId?: string | null | undefined
  readonly nextLookAt: number
  readonly lookedAt: number
  readonly trouble: string | null
  readonly missingSince: number | null
}

/** Saves all looks at once and gives their jobs back; gives the ids of those whose claim was lost, which are as they were. */
export async function saveLooks(store: Store, looks: readonly Look[]): Promise<readonly string[]> {
  if (looks.length === 0) return []
  const save = sql<{ id: string }>`with look as materialized (${readLooks(store.engine, looks)}) ${held(store.engine)}
    update jobs set
      state = case
        when jobs.state = 'in_progress' or (jobs.state = 'submitting' and look.ref is null) then jobs.state
        else look.state end,
      ref = coalesce(look.ref, jobs.ref),
      vendor_id = coalesce(look.vendor_id, jobs.vendor_id),
      submitted_at = coalesce(jobs.submitted_at, case when look.ref is null then null else look.looked_at end),
      polls = jobs.polls + 1,
      last_look_at = look.looked_at,
      next_look_at = look.next_look_at,
      missing_since = look.missing_since,
      trouble = look.trouble,
      lease_until = null,
      lease_owner = null
    from look where jobs.id = look.id and jobs.fence = look.fence and ${isOpen} ${isHeld(store.engine)}
    returning jobs.id`
  const { rows } = await transactTogether(store, (db) => save.execute(db))
  const saved = new Set(rows.map(({ id }) => id))
  return looks.flatMap(({ id }) => (saved.has(id) ? [] : [id]))
}

/** The columns of `look`, in the order of a look's values. */
const lookColumns: readonly (readonly [name: string, type: "text" | "bigint"])[] = [
  ["id", "text"],
  ["fence", "bigint"],
  ["state", "text"],
  ["ref", "text"],
  ["vendor_id", "text"],
  ["next_look_at", "bigint"],
  ["looked_at", "bigint"],
  ["trouble", "text"],
  ["missing_since", "bigint"],
]

function valuesOf(look: Look): readonly (string | number | null)[] {
  return [
    look.id,
    look.fence,
    look.state,
    writeRef(look.ref ?? null),
    plainText(look.vendorId ?? null),
    Math.round(look.nextLookAt),
    Math.round(look.lookedAt),
    plainText(look.trouble),
    look.missingSince === null ? null : Math.round(look.missingSince),
  ]
}

/** All looks as one parameter, so that any number of them is one statement of one text. */
function readLooks(engine: Engine, looks: readonly Look[]) {
  return sql`select ${lookValues} from ${jsonList(engine, JSON.stringify(looks.map(valuesOf)))}`
}

const lookValues = sql.raw(
  lookColumns.map(([name, type], place) => `cast(value ->> ${place} as ${type}) as ${name}`).join(", "),
)

/** The elements of a list as rows with the one column `value`. */
function jsonList(engine: Engine, json: string) {
  // Read as text first, because the driver would write a parameter known to be JSON as JSON once more.
  return engine === "postgres" ? sql`json_array_elements(${json}::text::json)` : sql`json_each(${json})`
}

/** Rows are locked in the order of their ids: one whose claim was lost meanwhile may be waiting for the same ones. */
function held(engine: Engine) {
  if (engine === "sqlite") return sql``
  return sql`, held as materialized (
      select jobs.id from jobs join look on jobs.id = look.id and jobs.fence = look.fence
      where ${isOpen} order by jobs.id for no key update of jobs
    )`
}

function isHeld(engine: Engine) {
  return engine === "sqlite" ? sql`` : sql`and jobs.id in (select held.id from held)`
}

/** Keeps claims that would run out while their owner is still at work on them. */
export async function renewClaims(
  db: Reader,
  owner: string,
  ids: readonly string[],
  leaseUntil: number,
): Promise<void> {
  const list = jsonList(engineOf(db), JSON.stringify(ids.map((id) => [id])))
  await db
    .updateTable("jobs")
    .set({ lease_until: milliseconds(leaseUntil) })
    .where("id", "in", claimsOf(db, owner).where("jobs.id", "in", sql<string>`(select value ->> 0 from ${list})`))
    .execute()
}

/** Gives back all that an instance has claimed, as it ends, or all that anyone has (null); says how many. */
export async function releaseClaims(db: Reader, owner: string | null): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable("jobs")
    .set(unclaimed)
    .where("id", "in", claimsOf(db, owner))
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

/** The jobs that an instance or anyone has claimed, but those being written at this moment: that gives them back or away. */
function claimsOf(db: Reader, owner: string | null) {
  const claimed =
    owner === null ? sql<boolean>`jobs.lease_owner is not null` : sql<boolean>`jobs.lease_owner = ${owner}`
  return db
    .selectFrom("jobs")
    .select("jobs.id")
    .where(isOpen)
    .where(claimed)
    .$if(engineOf(db) === "postgres", (query) => query.forNoKeyUpdate().skipLocked())
}
