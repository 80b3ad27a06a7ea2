import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { inTransaction } from "../../src/store/db.ts"
import {
  findJob,
  findJobForAdmin,
  findSignedJob,
  hideJob,
  type JobPlace,
  listJobs,
  listJobsBefore,
} from "../../src/store/job-lists.ts"
import { completeJob, failJob } from "../../src/store/job-settlement.ts"
import { insertJob } from "../../src/store/jobs.ts"
import { postTopup } from "../../src/store/ledger.ts"
import { engines, type FreshStore, freshStore, giveAccount, slowStart } from "./engines.ts"
import { completionOf, klingRoute, newJob, queuedJob, start, submitter } from "./job-samples.ts"
import { idOf } from "./records.ts"

describe.each([...engines])("lists of jobs on %s", (engine) => {
  let fresh: FreshStore
  beforeAll(async () => {
    fresh = await freshStore(engine)
  }, slowStart)
  afterAll(() => fresh.close())

  let accounts = 0
  const account = async () => {
    const name = `account-${++accounts}`
    await giveAccount(fresh.store, name)
    return { name, id: await idOf(fresh.store, name) }
  }
  const fail = (id: string) => failJob(fresh.store, { id, fence: 1, finishedAt: start, error: "no", trouble: null })
  const idsOf = (jobs: readonly { readonly id: string }[]) => jobs.map(({ id }) => id)

  /** All pages of a list, each from where the one before ended. */
  async function pagesOf<T extends JobPlace>(page: (before: T | null) => Promise<readonly T[]>): Promise<readonly T[]> {
    const all: T[] = []
    for (let rows = await page(null); rows.length > 0; rows = await page(all.at(-1)!)) all.push(...rows)
    return all
  }

  test("an account sees its own jobs, newest first; pages have no gaps where times are equal", async () => {
    const [own, other] = [await account(), await account()]
    const jobs = await Promise.all(
      Array.from({ length: 25 }, (_, n) => queuedJob(fresh.store, own.id, { createdAt: start + Math.floor(n / 10) })),
    )
    await queuedJob(fresh.store, other.id)
    const sending = newJob(own.id, { createdAt: start + 9 })
    await insertJob(fresh.store.db, sending, submitter)
    const newestFirst = [...jobs, sending].toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
    for (const limit of [1, 4, 10]) {
      const pages = await pagesOf((before) => listJobs(fresh.store.db, own.id, before, limit))
      expect(idsOf(pages)).toEqual(idsOf(newestFirst))
      const stories = await pagesOf((before) => listJobsBefore(fresh.store.db, { before, limit, account: own.id }))
      expect(idsOf(stories)).toEqual(idsOf(newestFirst))
    }
  })

  test("another account's job is as unknown as one that never was", async () => {
    const [own, other] = [await account(), await account()]
    const { id } = await queuedJob(fresh.store, own.id)
    expect((await findJob(fresh.store.db, own.id, id))?.id).toBe(id)
    expect(await findJob(fresh.store.db, other.id, id)).toBeNull()
    expect(await findJob(fresh.store.db, own.id, "no such job")).toBeNull()
    await fail(id)
    expect(await hideJob(fresh.store.db, other.id, id)).toBe(false)
    expect((await findJob(fresh.store.db, own.id, id))?.hidden).toBe(false)
  })

  test("a job can be deleted, once; neither its account nor its links show it any more, the back office does", async () => {
    const own = await account()
    const [kept, done] = [await queuedJob(fresh.store, own.id), await queuedJob(fresh.store, own.id)]
    await completeJob(fresh.store, completionOf(done.id, 1))
    expect((await findSignedJob(fresh.store.db, done.id))?.id).toBe(done.id)
    expect(await hideJob(fresh.store.db, own.id, done.id)).toBe(true)
    expect(await hideJob(fresh.store.db, own.id, done.id)).toBe(false)
    expect(await findJob(fresh.store.db, own.id, done.id)).toBeNull()
    expect(await findSignedJob(fresh.store.db, done.id)).toBeNull()
    expect(idsOf(await listJobs(fresh.store.db, own.id, null, 9))).toEqual([kept.id])
    expect(await findJobForAdmin(fresh.store.db, done.id)).toMatchObject({ hidden: true, state: "completed" })
    const all = await listJobsBefore(fresh.store.db, { before: null, limit: 9, account: own.id })
    expect(idsOf(all).toSorted()).toEqual([kept.id, done.id].toSorted())
  })

  test("a job that was deleted before its end goes on to its verdict and is charged", async () => {
    const own = await account()
    const { id } = await queuedJob(fresh.store, own.id)
    expect(await hideJob(fresh.store.db, own.id, id)).toBe(true)
    expect(await completeJob(fresh.store, completionOf(id, 1))).toBe("settled")
    const charged = { hidden: true, state: "completed", line: { amount: -5n, balanceAfter: -5n } }
    expect(await findJobForAdmin(fresh.store.db, id)).toMatchObject(charged)
  })

  test("the back office finds jobs by every filter, with the account's name and what was charged", async () => {
    const [own, other] = [await account(), await account()]
    const topup = { account: own.name, amount: 50n, reference: "t", note: null }
    await inTransaction(fresh.store, (trx) => postTopup(trx, topup))
    // Far from the jobs of the other tests, which are in the same lists.
    const at = start + 1_000_000
    const vidu = { ...klingRoute, upstream: "vidu-eu", vendor: "vidu" }
    const first = await queuedJob(fresh.store, own.id, { createdAt: at, model: "m-1" })
    const second = await queuedJob(fresh.store, own.id, { createdAt: at + 1, route: vidu })
    const third = await queuedJob(fresh.store, other.id, { createdAt: at + 2 })
    await completeJob(fresh.store, completionOf(first.id, 1))
    await fail(second.id)
    const list = async (ask: Partial<Parameters<typeof listJobsBefore>[1]>) =>
      idsOf(await listJobsBefore(fresh.store.db, { before: null, limit: 9, since: at, ...ask }))
    expect(await list({})).toEqual([third.id, second.id, first.id])
    expect(await list({ limit: 2 })).toEqual([third.id, second.id])
    expect(await list({ account: own.id })).toEqual([second.id, first.id])
    expect(await list({ model: "m-1" })).toEqual([first.id])
    expect(await list({ upstream: "vidu-eu" })).toEqual([second.id])
    expect(await list({ vendor: "vidu" })).toEqual([second.id])
    expect(await list({ state: "queued" })).toEqual([third.id])
    expect(await list({ since: at + 1, until: at + 2 })).toEqual([second.id])
    const charged = { id: first.id, account: own.name, line: { amount: -5n, balanceAfter: 45n }, charge: 5n }
    expect(await findJobForAdmin(fresh.store.db, first.id)).toMatchObject(charged)
    expect(await findJobForAdmin(fresh.store.db, third.id)).toMatchObject({ account: other.name, line: null })
    expect(await findJobForAdmin(fresh.store.db, "no such job")).toBeNull()
  })
})
