import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test"
import { nothingMeasured } from "../../src/core/measured.ts"
import { chargeFor, type Price } from "../../src/core/price.ts"
import { inTransaction, openStore, type Store } from "../../src/store/db.ts"
import { completeJob, failJob } from "../../src/store/job-settlement.ts"
import { insertJob } from "../../src/store/jobs.ts"
import { postTopup } from "../../src/store/ledger.ts"
import { engines, type FreshDatabase, freshDatabase, giveAccount, slowStart } from "../store/engines.ts"
import { completionOf, newJob, queuedJob, start, submitter } from "../store/job-samples.ts"
import { idOf } from "../store/records.ts"
import { jobCorruptions, jobId } from "./corruptions.ts"
import { look, spoilBooks } from "./spoilt-books.ts"

setDefaultTimeout(slowStart)

/** Jobs 1 and 2 with lines 2 and 3 of acme and globex; 3 completed for nothing, 4 failed, 5 and 6 open, all acme's. */
async function fill(store: Store): Promise<void> {
  for (const name of ["acme", "globex"]) await giveAccount(store, name)
  const [acme, globex] = [await idOf(store, "acme"), await idOf(store, "globex")]
  const topup = { account: "acme", amount: 10_000_000_000n, reference: "t-1", note: null }
  await inTransaction(store, (trx) => postTopup(trx, topup))
  const films: readonly [string, Price][] = [
    [acme, { second: "0.1" }],
    [globex, { second: "0.1" }],
    [acme, {}],
  ]
  for (const [n, [account, price]] of films.entries()) {
    const { id } = await queuedJob(store, account, { id: jobId(n + 1) })
    const tariff = { version: 1, multiplier: "1", price }
    const charge = chargeFor(tariff, { ...nothingMeasured, microseconds: 5_000_000 })
    expect(await completeJob(store, completionOf(id, 1, { charge }))).toBe("settled")
  }
  const failing = await queuedJob(store, acme, { id: jobId(4) })
  const failure = { id: failing.id, fence: 1, finishedAt: start, error: "no", trouble: null }
  expect(await failJob(store, failure)).toBe("settled")
  await queuedJob(store, acme, { id: jobId(5) })
  await insertJob(store.db, newJob(acme, { id: jobId(6) }), submitter)
}

describe.each([...engines])("reconciling video jobs on %s", (engine) => {
  let database: FreshDatabase
  let store: Store
  beforeEach(async () => {
    database = await freshDatabase(engine)
    store = await openStore(database.target)
    await fill(store)
  })
  afterEach(async () => {
    await store.close()
    database.remove()
  })

  test("jobs of every state that nobody has touched have no differences", async () => {
    const all = { accounts: 2, lines: 3, requests: 0, jobs: 6, hours: 1, differences: 0, told: [] }
    expect(await look(database.target)).toEqual(all)
  })

  test.each(jobCorruptions)("$name is told, and nothing else", async ({ by, told }) => {
    await spoilBooks(store, by)
    expect(await look(database.target)).toMatchObject({ differences: told.length, told })
  })

  test("of more jobs than are read at once each is looked at once", async () => {
    const same = "fence, account_id, created_at, key_id, key_name, request_id, model, with_image, upstream_id, upstream"
    const columns = `next_look_at, ${same}, vendor, upstream_model, base_url, tariff, attempts`
    await spoilBooks(store, [
      `insert into jobs (id, state, charge, ${columns})
        with recursive n(i) as (select 1001 union all select i + 1 from n where i < 3100)
        select '019a0000-0000-7000-8000-00000000' || i, 'completed', 1, ${columns}
        from n join jobs on jobs.id = '${jobId(4)}'`,
    ])
    const { jobs, told } = await look(database.target)
    expect(jobs).toBe(2106)
    const expected = Array.from({ length: 2100 }, (_, n) => `account "acme", video job "${jobId(1001 + n)}"`)
    expect(told.map((line) => line.split(":")[0])).toEqual(expected)
  })
})
