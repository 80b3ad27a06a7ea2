import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { newId } from "../../src/lib/ids.ts"
import { claimDue, dueUpstreams, releaseClaims, renewClaims, saveLooks } from "../../src/store/job-claims.ts"
import { findJobForAdmin } from "../../src/store/job-lists.ts"
import { failJob } from "../../src/store/job-settlement.ts"
import { insertJob, leaveInDoubt } from "../../src/store/jobs.ts"
import { engines, type FreshStore, freshStore, giveAccount, slowStart } from "./engines.ts"
import { klingRoute, lookAt, newJob, queuedJob, start, submitter, submitting } from "./job-samples.ts"
import { idOf } from "./records.ts"

describe.each([...engines])("claims on jobs on %s", (engine) => {
  let fresh: FreshStore
  let account = ""
  beforeAll(async () => {
    fresh = await freshStore(engine)
    await giveAccount(fresh.store, "acme")
    account = await idOf(fresh.store, "acme")
  }, slowStart)
  afterAll(() => fresh.close())

  /** An upstream of one test alone. */
  const upstream = () => {
    const route = { ...klingRoute, upstreamId: newId() }
    return {
      route,
      queued: (nextLookAt = start) => queuedJob(fresh.store, account, { route, nextLookAt }),
      claim: async (owner: string, now: number, limit = 10, leaseUntil = now + 30_000) =>
        await claimDue(fresh.store, { owner, now, leaseUntil, upstreamId: route.upstreamId, limit }),
      due: async (now: number) => (await dueUpstreams(fresh.store.db, now)).get(route.upstreamId),
    }
  }
  const found = async (id: string) => (await findJobForAdmin(fresh.store.db, id))!
  const idsOf = (jobs: readonly { readonly id: string }[]) => jobs.map(({ id }) => id)
  const fail = (id: string, fence: number) =>
    failJob(fresh.store, { id, fence, finishedAt: start, error: "no", trouble: null })

  test("due jobs of one upstream are claimed, longest waiting first, as many as asked for", async () => {
    const [here, elsewhere] = [upstream(), upstream()]
    const jobs = [await here.queued(start + 30), await here.queued(start + 10), await here.queued(start + 20)]
    await here.queued(start + 5_000)
    await elsewhere.queued(start)
    expect(await here.claim("a", start)).toEqual([])
    expect(await here.due(start + 1_000)).toBe(3)
    expect(await elsewhere.due(start + 1_000)).toBe(1)
    expect(idsOf(await here.claim("a", start + 1_000, 2))).toEqual([jobs[1]!.id, jobs[2]!.id])
    expect(await here.due(start + 1_000)).toBe(1)
    const [last] = await here.claim("b", start + 1_000)
    expect(last).toMatchObject({ id: jobs[0]!.id, fence: 2, state: "queued", ref: { task: jobs[0]!.id } })
    expect(await here.due(start + 1_000)).toBeUndefined()
  })

  test("a claimed job is nobody else's until the claim has run out, and each claim raises the fence", async () => {
    const { queued, claim, due } = upstream()
    const { id } = await queued()
    expect(await claim("a", start, 1, start + 100)).toMatchObject([{ id, fence: 2 }])
    expect(await claim("b", start + 99)).toEqual([])
    expect(await due(start + 99)).toBeUndefined()
    expect(await due(start + 100)).toBe(1)
    expect(await claim("b", start + 100)).toMatchObject([{ id, fence: 3 }])
  })

  test("a job being submitted is left alone, however due, until its submitter's claim has run out", async () => {
    const { route, claim } = upstream()
    const job = newJob(account, { route, nextLookAt: start })
    await insertJob(fresh.store.db, job, submitter)
    expect(await claim("a", start + 59_999)).toEqual([])
    expect(await claim("a", start + 60_000)).toEqual([{ ...submitting(job), fence: 2 }])
  })

  test("jobs that are over are never due", async () => {
    const { queued, claim, due } = upstream()
    expect(await fail((await queued()).id, 1)).toBe("settled")
    expect(await due(start + 1_000)).toBeUndefined()
    expect(await claim("a", start + 1_000)).toEqual([])
  })

  test("a look is saved and the job given back", async () => {
    const { queued, claim } = upstream()
    const { id } = await queued()
    const before = await found(id)
    await claim("a", start)
    const changes = { state: "in_progress", trouble: "sta\0tus 502", missingSince: start + 1.6 } as const
    expect(await saveLooks(fresh.store, [lookAt(id, 2, changes)])).toEqual([])
    const after = {
      ...before,
      state: "in_progress" as const,
      fence: 2,
      polls: 1,
      lastLookAt: start + 5_000,
      nextLookAt: start + 10_000,
      trouble: "status 502",
      missingSince: start + 2,
    }
    expect(await found(id)).toEqual(after)
    expect(await claim("b", start + 9_999)).toEqual([])
    expect(await claim("b", start + 10_000)).toMatchObject([{ id, fence: 3 }])
    const ref = { next: ["a", { b: '\0"' }] }
    expect(await saveLooks(fresh.store, [lookAt(id, 3, { ref, vendorId: "v-2" })])).toEqual([])
    const quiet = { trouble: null, missingSince: null, polls: 2, fence: 3 }
    expect(await found(id)).toEqual({ ...after, ...quiet, ref, vendorId: "v-2" })
  })

  test("many looks at once: those whose claim was lost are told and change nothing, the others are saved", async () => {
    const { queued, claim } = upstream()
    const jobs = await Promise.all(Array.from({ length: 100 }, () => queued()))
    await claim("a", start, 100, start + 50)
    const taken = await claim("b", start + 50, 30)
    const over = jobs.find(({ id }) => !idsOf(taken).includes(id))!
    await fail(over.id, 2)
    const lost = [...idsOf(taken), over.id]
    const before = await Promise.all(lost.map(found))
    const looks = jobs.map(({ id }, n) => lookAt(id, 2, { nextLookAt: start + n, trouble: `trouble ${n}` }))
    const refused = await saveLooks(fresh.store, [...looks, lookAt("nobody", 1)])
    expect(refused.toSorted()).toEqual([...lost, "nobody"].toSorted())
    expect(await Promise.all(lost.map(found))).toEqual(before)
    for (const [n, { id }] of jobs.entries()) {
      if (lost.includes(id)) continue
      expect(await found(id)).toMatchObject({ trouble: `trouble ${n}`, nextLookAt: start + n, polls: 1 })
    }
    expect(await saveLooks(fresh.store, [])).toEqual([])
  })

  test("a job never goes back from in_progress to queued", async () => {
    const { queued, claim } = upstream()
    const { id } = await queued()
    for (const [fence, state, after] of [
      [2, "queued", "queued"],
      [3, "in_progress", "in_progress"],
      [4, "queued", "in_progress"],
    ] as const) {
      await claim("a", start + fence * 20_000)
      expect(await saveLooks(fresh.store, [lookAt(id, fence, { state })])).toEqual([])
      expect((await found(id)).state).toBe(after)
    }
  })

  test("a job in doubt is queued by a look that found it, not by one that found nothing", async () => {
    const { route, claim } = upstream()
    const job = newJob(account, { route })
    await insertJob(fresh.store.db, job, submitter)
    await leaveInDoubt(fresh.store.db, job.id, 1, { nextLookAt: start, trouble: "reset", attempts: [] })
    await claim("a", start)
    expect(await saveLooks(fresh.store, [lookAt(job.id, 2, { trouble: "away", nextLookAt: start })])).toEqual([])
    expect(await found(job.id)).toMatchObject({ state: "submitting", ref: null, submittedAt: null, polls: 1 })
    await claim("a", start)
    expect(await saveLooks(fresh.store, [lookAt(job.id, 3, { ref: "r", vendorId: "v" })])).toEqual([])
    const taken = { state: "queued", ref: "r", vendorId: "v", submittedAt: start + 5_000, trouble: null }
    expect(await found(job.id)).toMatchObject(taken)
  })

  test("a claim that is renewed holds on; renewing takes nothing from others and nothing that was given back", async () => {
    const { queued, claim } = upstream()
    const [mine, given, others] = [await queued(start), await queued(start + 1), await queued(start + 2)]
    await claim("a", start + 1, 2, start + 100)
    await claim("b", start + 2, 1, start + 100)
    await saveLooks(fresh.store, [lookAt(given.id, 2, { nextLookAt: start })])
    await renewClaims(fresh.store.db, "a", idsOf([mine, given, others]), start + 200)
    await renewClaims(fresh.store.db, "a", [], start + 900)
    expect(idsOf(await claim("c", start + 100))).toEqual([given.id, others.id])
    expect(idsOf(await claim("c", start + 200))).toEqual([mine.id])
  })

  test("an instance that ends gives back what it has claimed and nothing else", async () => {
    const { route, queued, claim } = upstream()
    const owner = newId()
    const [mine, others] = [await queued(start), await queued(start + 1)]
    const sent = newJob(account, { route, nextLookAt: start + 2 })
    await insertJob(fresh.store.db, sent, { owner, leaseUntil: start + 60_000 })
    expect(idsOf(await claim(owner, start))).toEqual([mine.id])
    expect(idsOf(await claim("b", start + 1))).toEqual([others.id])
    expect(await releaseClaims(fresh.store.db, owner)).toBe(2)
    expect(idsOf(await claim("c", start + 2))).toEqual([mine.id, sent.id])
    expect(await releaseClaims(fresh.store.db, owner)).toBe(0)
    expect(await releaseClaims(fresh.store.db, null)).toBeGreaterThanOrEqual(3)
    expect(await releaseClaims(fresh.store.db, null)).toBe(0)
    expect(idsOf(await claim("d", start + 2))).toEqual([mine.id, others.id, sent.id])
  })
})

describe.each([...engines])("upstreams with due jobs on %s", (engine) => {
  let fresh: FreshStore
  beforeAll(async () => {
    fresh = await freshStore(engine)
    await giveAccount(fresh.store, "acme")
  }, slowStart)
  afterAll(() => fresh.close())

  test("all of them are found, and none whose jobs are to wait", async () => {
    const { store } = fresh
    const account = await idOf(store, "acme")
    expect(await dueUpstreams(store.db, start)).toEqual(new Map())
    const jobIn = (upstreamId: string, nextLookAt: number) =>
      queuedJob(store, account, { route: { ...klingRoute, upstreamId }, nextLookAt })
    await jobIn("u-2", start + 500)
    await jobIn("u-1", start + 300)
    await jobIn("u-3", start + 900)
    expect(await dueUpstreams(store.db, start + 500)).toEqual(
      new Map([
        ["u-1", 1],
        ["u-2", 1],
      ]),
    )
  })
})
