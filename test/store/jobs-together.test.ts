import { afterAll, beforeAll, expect, test } from "bun:test"
import { sql } from "kysely"
import { type DatabaseTarget, inTransaction, openStore, type Store } from "../../src/store/db.ts"
import { claimDue, releaseClaims, renewClaims, saveLooks } from "../../src/store/job-claims.ts"
import { findJobForAdmin } from "../../src/store/job-lists.ts"
import { completeJob } from "../../src/store/job-settlement.ts"
import { insertJob } from "../../src/store/jobs.ts"
import { balanceOf, postTopup } from "../../src/store/ledger.ts"
import { allLines } from "../../src/store/reconcile-reads.ts"
import { postSettlements } from "../../src/store/settlements.ts"
import { freshDatabase, giveAccount, slowStart } from "./engines.ts"
import { completionOf, klingRoute, lookAt, newJob, queuedJob, start } from "./job-samples.ts"
import { idOf, requestRecord } from "./records.ts"

let target: DatabaseTarget
let instances: readonly Store[] = []
let account = ""
beforeAll(async () => {
  target = (await freshDatabase("postgres")).target
  await findByIndex(target)
  instances = await Promise.all([1, 2, 3].map(() => openStore(target, { poolSize: 8 })))
  await giveAccount(instances[0]!, "acme")
  account = await idOf(instances[0]!, "acme")
}, slowStart)
afterAll(() => Promise.all(instances.map((store) => store.close())))

/** Rows are found one by one through indexes, as they are among many, and not all in the order they lie in. */
async function findByIndex(database: DatabaseTarget): Promise<void> {
  const store = await openStore(database)
  for (const way of ["seqscan", "hashjoin", "mergejoin"]) {
    const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(store.db)
    await sql`alter database ${sql.id(rows[0]!.name)} set ${sql.raw(`enable_${way}`)} = off`.execute(store.db)
  }
  await store.close()
}

const instance = (n: number) => instances[n % instances.length]!

async function dueJobs(upstreamId: string, count: number): Promise<readonly string[]> {
  const route = { ...klingRoute, upstreamId }
  const jobs = Array.from({ length: count }, (_, n) => newJob(account, { route, nextLookAt: start + (n % 7) }))
  await inTransaction(instances[0]!, async (trx) => {
    for (const job of jobs) await insertJob(trx, job, { owner: "gone", leaseUntil: start })
  })
  return jobs.map(({ id }) => id)
}

test("a hundred claim at once: every job goes to exactly one of them", async () => {
  const ids = await dueJobs("crowded", 600)
  const claimAll = async (n: number) => {
    const claimed: string[] = []
    for (;;) {
      const ask = { owner: `o-${n}`, now: start + 10, leaseUntil: start + 9_999, upstreamId: "crowded", limit: 5 }
      const jobs = await claimDue(instance(n), ask)
      expect(jobs.length).toBeLessThanOrEqual(5)
      if (jobs.length === 0) return claimed
      for (const job of jobs) expect(job.fence).toBe(2)
      claimed.push(...jobs.map(({ id }) => id))
    }
  }
  const claimed = await Promise.all(Array.from({ length: 100 }, (_, n) => claimAll(n)))
  expect(claimed.flat().toSorted()).toEqual(ids.toSorted())
}, 30_000)

test("claims, looks, renewals and releases of many instances at once: nobody waits in a ring, and each job is looked at by its claimer alone", async () => {
  const ids = await dueJobs("busy", 200)
  let saved = 0
  const work = async (n: number) => {
    for (let round = 0; round < 6; round++) {
      const now = start + 1_000 * (round + 1)
      const ask = { owner: `o-${n}`, now, leaseUntil: now + 500, upstreamId: "busy", limit: 40 }
      const jobs = await claimDue(instance(n), ask)
      const looks = jobs.map(({ id, fence }) => lookAt(id, fence, { ref: "r", nextLookAt: now }))
      const renewing = renewClaims(instance(n).db, ask.owner, ids, now + 500)
      const lost = await saveLooks(instance(n), n % 2 === 0 ? looks : looks.toReversed())
      saved += looks.length - lost.length
      await renewing
      await releaseClaims(instance(n).db, ask.owner)
    }
  }
  await Promise.all(Array.from({ length: 12 }, (_, n) => work(n)))
  const { polls } = await instances[0]!.db
    .selectFrom("jobs")
    .select(sql<bigint>`cast(sum(polls) as bigint)`.as("polls"))
    .where("id", "in", ids)
    .executeTakeFirstOrThrow()
  expect(Number(polls)).toBe(saved)
  expect(saved).toBeGreaterThan(0)
}, 30_000)

test("the same looks saved by several at once, each in another order: nobody waits in a ring", async () => {
  const ids = await dueJobs("ring", 20)
  for (let round = 0; round < 20; round++) {
    const saving = instances.flatMap((store, n) => {
      const looks = ids.map((_, k) => lookAt(ids[(k * [1, 19, 7][n]!) % ids.length]!, 1))
      return [saveLooks(store, looks), saveLooks(store, looks.toReversed())]
    })
    expect((await Promise.all(saving)).flat()).toEqual([])
  }
}, 30_000)

test("three instances complete the same jobs while requests are charged: one line each, balances exact", async () => {
  const store = instances[0]!
  await inTransaction(store, (trx) => postTopup(trx, { account: "acme", amount: 1_000n, reference: "t", note: null }))
  const jobs = await Promise.all(Array.from({ length: 20 }, () => queuedJob(store, account)))
  const outcomes = jobs.flatMap(({ id }) => instances.map((each) => completeJob(each, completionOf(id, 1))))
  const endedAt = completionOf("any", 1).finishedAt
  const place = { model: "kling-video", upstream: "kling-main", endedAt, charge: 2n }
  const requests = Array.from({ length: 20 }, (_, n) =>
    postSettlements(instance(n), [requestRecord(account, place), requestRecord(account, place)], { mayBeKnown: false }),
  )
  const settled = await Promise.all(outcomes)
  await Promise.all(requests)
  expect(settled.filter((outcome) => outcome === "settled")).toHaveLength(jobs.length)
  const lines = (await Array.fromAsync(allLines(store.db))).filter(({ accountId }) => accountId === account)
  let balance = 0n
  for (const line of lines) {
    balance += line.amount
    expect(line.balanceAfter).toBe(balance)
  }
  expect(balance).toBe(1_000n - 20n * 5n - 40n * 2n)
  const references = lines.map(({ reference }) => reference).filter((reference) => reference.startsWith("video_"))
  expect(references.toSorted()).toEqual(jobs.map(({ id }) => `video_${id}`).toSorted())
  const [hour] = await store.db.selectFrom("usage_hours").selectAll().where("account_id", "=", account).execute()
  expect(hour).toMatchObject({ requests: 40n, microseconds: 100_000_000n, charge: 180n })
}, 30_000)

test("an instance that dies while it settles leaves the job open and no line; another one settles it", async () => {
  const [dying, other] = [await openStore(target, { poolSize: 1 }), instances[0]!]
  const { id } = await queuedJob(other, account)
  const balance = await balanceOf(other.db, account)
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(dying.db)
  await inTransaction(other, async (trx) => {
    await trx.selectFrom("accounts").select("id").where("id", "=", account).forNoKeyUpdate().execute()
    const settling = completeJob(dying, completionOf(id, 1)).catch((error: unknown) => error)
    const waits = sql`select 1 from pg_stat_activity where pid = ${rows[0]!.pid} and wait_event_type = 'Lock'`
    while ((await waits.execute(instances[1]!.db)).rows.length === 0) await Bun.sleep(5)
    await sql`select pg_terminate_backend(${rows[0]!.pid})`.execute(instances[1]!.db)
    expect(await settling).toBeInstanceOf(Error)
  })
  expect(await findJobForAdmin(other.db, id)).toMatchObject({ state: "queued", charge: 0n, line: null })
  expect(await balanceOf(other.db, account)).toBe(balance)
  expect(await completeJob(other, completionOf(id, 1))).toBe("settled")
  expect(await balanceOf(other.db, account)).toBe(balance - 5n)
  await dying.close()
}, 30_000)
