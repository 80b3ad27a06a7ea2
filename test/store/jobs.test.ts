import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { sql } from "kysely"
import { deleteAccount } from "../../src/store/accounts.ts"
import { inTransaction } from "../../src/store/db.ts"
import { isDuplicate } from "../../src/store/errors.ts"
import { claimDue } from "../../src/store/job-claims.ts"
import { findJob, findJobForAdmin } from "../../src/store/job-lists.ts"
import { completeJob, failJob } from "../../src/store/job-settlement.ts"
import { acceptJob, dropJob, insertJob, leaveInDoubt, moveJob, refreshResult } from "../../src/store/jobs.ts"
import { engines, type FreshStore, freshStore, giveAccount, slowStart } from "./engines.ts"
import { attempts, completionOf, klingRoute, newJob, queuedJob, start, submitter, submitting } from "./job-samples.ts"
import { idOf } from "./records.ts"

const otherRoute = {
  ...klingRoute,
  upstreamId: "upstream-2",
  upstream: "vidu",
  credentialDigest: null,
  sentSeconds: null,
}

describe.each([...engines])("submitting jobs on %s", (engine) => {
  let fresh: FreshStore
  let account = ""
  beforeAll(async () => {
    fresh = await freshStore(engine)
    await giveAccount(fresh.store, "acme")
    account = await idOf(fresh.store, "acme")
  }, slowStart)
  afterAll(() => fresh.close())
  const written = async () => {
    const job = newJob(account)
    await insertJob(fresh.store.db, job, submitter)
    return job
  }
  const found = (id: string) => findJob(fresh.store.db, account, id)
  const acceptance = {
    ref: { path: "text2video", odd: 'a "b" \0 ü' },
    vendorId: "task\0-1",
    route: otherRoute,
    attempts,
    submittedAt: start + 900.4,
    nextLookAt: start + 2_900,
  }

  test("a job is written down whole, once, and for an account that exists", async () => {
    const job = await written()
    expect(await found(job.id)).toEqual(submitting(job))
    const again = await insertJob(fresh.store.db, job, submitter).catch((error: unknown) => error)
    expect(isDuplicate(again)).toBe(true)
    await expect(insertJob(fresh.store.db, newJob("nobody"), submitter)).rejects.toThrow(/foreign key/i)
  })

  test("another route and then the vendor's word: the job is queued there, with all its attempts, and nobody's", async () => {
    const job = await written()
    expect(await moveJob(fresh.store.db, job.id, 1, otherRoute, attempts)).toBe(true)
    expect(await found(job.id)).toEqual({ ...submitting(job), route: otherRoute, attempts })
    expect(await acceptJob(fresh.store.db, job.id, 1, acceptance)).toBe(true)
    expect(await found(job.id)).toEqual({
      ...submitting(job),
      state: "queued",
      ref: acceptance.ref,
      vendorId: "task-1",
      route: otherRoute,
      attempts,
      submittedAt: start + 900,
      nextLookAt: start + 2_900,
    })
    const ask = { owner: "x", now: start + 3_000, leaseUntil: start + 9_000, upstreamId: "upstream-2", limit: 9 }
    expect((await claimDue(fresh.store, ask)).map(({ id }) => id)).toEqual([job.id])
  })

  test("a dropped job is gone", async () => {
    const job = await written()
    expect(await dropJob(fresh.store.db, job.id, 1)).toBe(true)
    expect(await found(job.id)).toBeNull()
    expect(await dropJob(fresh.store.db, job.id, 1)).toBe(false)
  })

  test("a job in doubt stays as it is, and may be looked at by anybody from the time said on", async () => {
    const route = { ...klingRoute, upstreamId: "doubtful" }
    const job = newJob(account, { route })
    await insertJob(fresh.store.db, job, submitter)
    const doubt = { nextLookAt: start + 5_000, trouble: "reset\0 by peer", attempts }
    expect(await leaveInDoubt(fresh.store.db, job.id, 1, doubt)).toBe(true)
    const left = { nextLookAt: start + 5_000, trouble: "reset by peer", attempts }
    expect(await found(job.id)).toEqual({ ...submitting(job), ...left })
    const ask = { owner: "x", leaseUntil: start + 90_000, upstreamId: "doubtful", limit: 9 }
    expect(await claimDue(fresh.store, { ...ask, now: start + 4_999 })).toEqual([])
    expect(await claimDue(fresh.store, { ...ask, now: start + 5_000 })).toEqual([
      { ...submitting(job), ...left, fence: 2 },
    ])
  })

  test("a submitter whose claim was taken over, or whose job was taken, changes nothing any more", async () => {
    const { db } = fresh.store
    const overtaken = newJob(account, { route: { ...klingRoute, upstreamId: "overtaken" } })
    await insertJob(db, overtaken, submitter)
    const late = { owner: "x", now: start + 60_000, leaseUntil: start + 90_000, upstreamId: "overtaken", limit: 1 }
    expect(await claimDue(fresh.store, late)).toHaveLength(1)
    const queued = await queuedJob(fresh.store, account)
    for (const { id } of [overtaken, queued]) {
      const before = await found(id)
      expect(await moveJob(db, id, 1, otherRoute, [])).toBe(false)
      expect(await acceptJob(db, id, 1, acceptance)).toBe(false)
      expect(await leaveInDoubt(db, id, 1, { nextLookAt: 0, trouble: "x", attempts: [] })).toBe(false)
      expect(await dropJob(db, id, 1)).toBe(false)
      expect(await found(id)).toEqual(before)
    }
  })

  test("the address of a result is renewed where there is one, and nowhere else", async () => {
    const [done, failed, open] = await Promise.all([1, 2, 3].map(() => queuedJob(fresh.store, account)))
    const free = { amount: 0n, price: { version: 1, multiplier: "1", units: {} } }
    await completeJob(fresh.store, completionOf(done!.id, 1, { charge: free }))
    await failJob(fresh.store, { id: failed!.id, fence: 1, finishedAt: start, error: "no", trouble: null })
    const before = await found(done!.id)
    expect(await refreshResult(fresh.store.db, done!.id, "https://new.example/v")).toBe(true)
    expect(await found(done!.id)).toEqual({ ...before!, resultUrl: "https://new.example/v" })
    for (const { id } of [failed!, open!]) {
      expect(await refreshResult(fresh.store.db, id, "https://new.example/v")).toBe(false)
      expect((await findJobForAdmin(fresh.store.db, id))!.resultUrl).toBeNull()
    }
  })

  test("an account with jobs stays; a state nobody knows is refused by the database", async () => {
    await giveAccount(fresh.store, "maker")
    await queuedJob(fresh.store, await idOf(fresh.store, "maker"))
    const deleting = inTransaction(fresh.store, (trx) => deleteAccount(trx, "maker"))
    await expect(deleting).rejects.toThrow(
      'account "maker" has video jobs, which are kept; suspend the account instead',
    )
    await expect(sql`update jobs set state = 'paused'`.execute(fresh.store.db)).rejects.toThrow(/check constraint/i)
  })
})
