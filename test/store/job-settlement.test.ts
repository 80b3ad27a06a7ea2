import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { sql } from "kysely"
import { inTransaction } from "../../src/store/db.ts"
import { claimDue, saveLooks } from "../../src/store/job-claims.ts"
import { findJobForAdmin } from "../../src/store/job-lists.ts"
import { completeJob, failJob } from "../../src/store/job-settlement.ts"
import { refreshResult } from "../../src/store/jobs.ts"
import { balanceOf, lineOf, postAdjustment, postTopup } from "../../src/store/ledger.ts"
import { postSettlements } from "../../src/store/settlements.ts"
import { engines, type FreshStore, freshStore, giveAccount, slowStart } from "./engines.ts"
import { completionOf, klingRoute, lookAt, queuedJob, start } from "./job-samples.ts"
import { idOf, requestRecord } from "./records.ts"

describe.each([...engines])("settling jobs on %s", (engine) => {
  let fresh: FreshStore
  beforeAll(async () => {
    fresh = await freshStore(engine)
  }, slowStart)
  afterAll(() => fresh.close())

  let accounts = 0
  /** An account of this test alone that has 100. */
  const payer = async () => {
    const account = `account-${++accounts}`
    await giveAccount(fresh.store, account)
    const topup = { account, amount: 100n, reference: `t-${account}`, note: null }
    await inTransaction(fresh.store, (trx) => postTopup(trx, topup))
    return { name: account, id: await idOf(fresh.store, account) }
  }
  const found = async (id: string) => (await findJobForAdmin(fresh.store.db, id))!
  const chargesOf = async (accountId: string) => {
    const query = fresh.store.db.selectFrom("ledger").selectAll().where("account_id", "=", accountId).orderBy("id")
    return (await query.where("kind", "=", "charge").execute()).map(lineOf)
  }
  const usageOf = (table: "usage_hours" | "usage_days", accountId: string) =>
    fresh.store.db.selectFrom(table).selectAll().where("account_id", "=", accountId).execute()
  const fail = (id: string, fence: number) =>
    failJob(fresh.store, { id, fence, finishedAt: start, error: "mode\0ration", trouble: "said no" })

  test("a completed job is charged in the same moment, by a line that explains itself", async () => {
    const { id: account, name } = await payer()
    const { id } = await queuedJob(fresh.store, account)
    const before = await found(id)
    const completion = completionOf(id, 1, { microseconds: 5_041_667, secondsSource: "probed", kept: true })
    expect(await completeJob(fresh.store, completion)).toBe("settled")
    expect(await found(id)).toEqual({
      ...before,
      state: "completed",
      finishedAt: start + 90_000,
      resultUrl: completion.resultUrl,
      resultKept: true,
      microseconds: 5_041_667,
      secondsSource: "probed",
      price: completion.charge.price,
      charge: 5n,
      account: name,
      line: { amount: -5n, balanceAfter: 95n },
    })
    const [line] = await chargesOf(account)
    expect(line).toMatchObject({
      amount: -5n,
      balanceAfter: 95n,
      reference: `video_${id}`,
      price: completion.charge.price,
      estimated: true,
      createdAt: start + 90_000,
      measured: {
        model: "kling-video",
        upstream: "kling-main",
        endpoint: "video",
        measured: { tokens: null, microseconds: 5_041_667 },
        secondsSource: "probed",
      },
    })
    expect(await balanceOf(fresh.store.db, account)).toBe(95n)
  })

  test("a length that the vendor reports is no estimate, nor is one that nothing is charged by", async () => {
    const { id: account } = await payer()
    const perCall = { amount: 7n, price: { version: 3, multiplier: "1", units: { request: "1" } } }
    for (const changes of [{}, { secondsSource: null, microseconds: null, charge: perCall }]) {
      const { id } = await queuedJob(fresh.store, account)
      await completeJob(fresh.store, completionOf(id, 1, changes))
    }
    const lines = await chargesOf(account)
    expect(lines.map(({ estimated, amount }) => ({ estimated, amount }))).toEqual([
      { estimated: false, amount: -5n },
      { estimated: false, amount: -7n },
    ])
    expect(lines.map((line) => line.measured?.secondsSource)).toEqual(["reported", undefined])
  })

  test("roll-ups grow by length and charge, in the hour it was finished in, beside the requests of the same place", async () => {
    const { id: account } = await payer()
    const finishedAt = start + 7_200_000
    const place = { model: "kling-video", upstream: "kling-main", endedAt: finishedAt }
    await postSettlements(fresh.store, [requestRecord(account, { ...place, charge: 0n })], { mayBeKnown: false })
    for (const _ of [1, 2]) {
      const { id } = await queuedJob(fresh.store, account)
      await completeJob(fresh.store, completionOf(id, 1, { finishedAt }))
    }
    for (const [table, time] of [
      ["usage_hours", { hour: BigInt(Math.floor(finishedAt / 3_600_000)) }],
      ["usage_days", { day: BigInt(Math.floor(finishedAt / 86_400_000)) }],
    ] as const) {
      const counts = { requests: 1n, failures: 0n, estimated: 0n, microseconds: 10_000_000n, charge: 10n }
      expect(await usageOf(table, account)).toMatchObject([{ ...time, ...counts, duration_ms: 1000n }])
    }
  })

  test("a job that costs nothing leaves no line and no roll-up", async () => {
    const { id: account } = await payer()
    const { id } = await queuedJob(fresh.store, account)
    const free = { amount: 0n, price: { version: 1, multiplier: "1", units: {} } }
    expect(await completeJob(fresh.store, completionOf(id, 1, { charge: free, needsCredential: true }))).toBe("settled")
    expect(await found(id)).toMatchObject({ state: "completed", charge: 0n, line: null, resultNeedsCredential: true })
    expect(await usageOf("usage_hours", account)).toEqual([])
  })

  test("a failed job costs nothing", async () => {
    const { id: account } = await payer()
    const { id } = await queuedJob(fresh.store, account)
    expect(await fail(id, 1)).toBe("settled")
    const verdict = { state: "failed", error: "moderation", trouble: "said no", finishedAt: start, line: null }
    expect(await found(id)).toMatchObject(verdict)
    expect(await balanceOf(fresh.store.db, account)).toBe(100n)
  })

  test("a job that is over stays as it is, whatever is said of it later", async () => {
    const { id: account } = await payer()
    const [done, failed] = [await queuedJob(fresh.store, account), await queuedJob(fresh.store, account)]
    await completeJob(fresh.store, completionOf(done.id, 1))
    await fail(failed.id, 1)
    for (const { id } of [done, failed]) {
      const before = await found(id)
      expect(await completeJob(fresh.store, completionOf(id, 1, { resultUrl: "https://other.example" }))).toBe("lost")
      expect(await fail(id, 1)).toBe("lost")
      expect(await saveLooks(fresh.store, [lookAt(id, 1)])).toEqual([id])
      expect(await found(id)).toEqual(before)
    }
    expect(await chargesOf(account)).toHaveLength(1)
    expect(await refreshResult(fresh.store.db, failed.id, "https://other.example")).toBe(false)
  })

  test("whoever lost the claim can neither complete nor fail the job; whoever took it over can", async () => {
    const { id: account } = await payer()
    const route = { ...klingRoute, upstreamId: `taken-over-${account}` }
    const { id } = await queuedJob(fresh.store, account, { route })
    const claim = (owner: string, now: number) =>
      claimDue(fresh.store, { owner, now, leaseUntil: now + 100, upstreamId: route.upstreamId, limit: 1 })
    const [paused] = await claim("paused", start)
    const [heir] = await claim("heir", start + 100)
    const before = await found(id)
    expect(await completeJob(fresh.store, completionOf(id, paused!.fence))).toBe("lost")
    expect(await fail(id, paused!.fence)).toBe("lost")
    expect(await found(id)).toEqual(before)
    expect(await chargesOf(account)).toEqual([])
    expect(await completeJob(fresh.store, completionOf(id, heir!.fence))).toBe("settled")
    expect(await completeJob(fresh.store, completionOf(id, paused!.fence))).toBe("lost")
    expect(await balanceOf(fresh.store.db, account)).toBe(95n)
  })

  test("what fails half-way leaves the job open and the books as they were, and can be done again", async () => {
    const { id: account } = await payer()
    const { id } = await queuedJob(fresh.store, account)
    const before = await found(id)
    // The roll-up by days is written last: here it has no room for another charge.
    await completeJob(fresh.store, completionOf((await queuedJob(fresh.store, account)).id, 1))
    const setDays = (charge: bigint) =>
      sql`update usage_days set charge = ${charge} where account_id = ${account}`.execute(fresh.store.db)
    await setDays(2n ** 63n - 1n)
    const hours = await usageOf("usage_hours", account)
    await expect(completeJob(fresh.store, completionOf(id, 1))).rejects.toThrow()
    expect(await found(id)).toEqual(before)
    expect(await chargesOf(account)).toHaveLength(1)
    expect(await usageOf("usage_hours", account)).toEqual(hours)
    await setDays(5n)
    expect(await completeJob(fresh.store, completionOf(id, 1))).toBe("settled")
    expect((await found(id)).line).toEqual({ amount: -5n, balanceAfter: 90n })
  })

  test("a charge below zero or beyond what can be kept is refused, and the job stays open", async () => {
    const { id: account } = await payer()
    const { id } = await queuedJob(fresh.store, account)
    const { price } = completionOf(id, 1).charge
    for (const amount of [-1n, 2n ** 63n]) {
      await expect(completeJob(fresh.store, completionOf(id, 1, { charge: { amount, price } }))).rejects.toThrow()
    }
    expect((await found(id)).state).toBe("queued")
    expect(await chargesOf(account)).toEqual([])
  })

  test("a job's reference is kept for its charge", async () => {
    const { id: account, name } = await payer()
    const { id } = await queuedJob(fresh.store, account)
    const adjust = (reference: string) =>
      inTransaction(fresh.store, (trx) => postAdjustment(trx, { account: name, amount: 1n, reference, note: "x" }))
    await expect(adjust(`video_${id}`)).rejects.toThrow(`use another, such as "refund:video_${id}"`)
    expect((await adjust(`refund:video_${id}`)).posted).toBe(true)
  })
})
