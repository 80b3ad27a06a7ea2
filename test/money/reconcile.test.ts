import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test"
import fc from "fast-check"
import { nothingMeasured } from "../../src/core/measured.ts"
import { chargeFor, type Price, type Tariff } from "../../src/core/price.ts"
import type { RequestRecord } from "../../src/core/request-record.ts"
import { newId } from "../../src/lib/ids.ts"
import { deleteAccount } from "../../src/store/accounts.ts"
import { inTransaction, openStore, type Store } from "../../src/store/db.ts"
import { completeJob } from "../../src/store/job-settlement.ts"
import { insertJob } from "../../src/store/jobs.ts"
import { postAdjustment, postTopup } from "../../src/store/ledger.ts"
import { deleteRequestsBefore } from "../../src/store/requests.ts"
import { postSettlements } from "../../src/store/settlements.ts"
import { engines, type FreshDatabase, freshDatabase, giveAccount, slowStart } from "../store/engines.ts"
import { anyRecords, idOf, requestRecord } from "../store/records.ts"
import { corruptions, day, globexOnly, hour, id, place } from "./corruptions.ts"
import { look, spoilBooks } from "./spoilt-books.ts"

setDefaultTimeout(slowStart)

const once = { mayBeKnown: false }
const again = { mayBeKnown: true }
/** What the sample request costs by its own price. */
const cost = 93_750n

/** Two accounts: acme with lines 1, 3, 4 and 6 and a request that was not charged, globex with lines 2 and 5. */
async function fill(store: Store): Promise<void> {
  for (const name of ["acme", "globex"]) await giveAccount(store, name)
  const [acme, globex] = [await idOf(store, "acme"), await idOf(store, "globex")]
  const topups = [
    { account: "acme", amount: 10_000_000_000n, reference: "t-1", note: null },
    { account: "globex", amount: 5_000_000_000n, reference: "t-2", note: null },
  ]
  for (const topup of topups) await inTransaction(store, (trx) => postTopup(trx, topup))
  const records = [
    requestRecord(acme, { id: id(1), charge: cost }),
    requestRecord(acme, { id: id(2), charge: cost }),
    requestRecord(globex, { id: id(3), charge: cost }),
    requestRecord(acme, { id: id(4), charge: 0n, price: null, status: 404, upstream: null, model: "nothing" }),
  ]
  await postSettlements(store, records, once)
  const adjustment = { account: "acme", amount: 1_000_000_000n, reference: "a-1", note: "a gift" }
  await inTransaction(store, (trx) => postAdjustment(trx, adjustment))
}

describe.each([...engines])("reconciling on %s", (engine) => {
  let database: FreshDatabase
  let store: Store
  beforeEach(async () => {
    database = await freshDatabase(engine)
    store = await openStore(database.target)
  })
  afterEach(async () => {
    await store.close()
    database.remove()
  })
  const spoil = (statements: readonly string[]) => spoilBooks(store, statements)

  test("books without anything in them have no differences", async () => {
    const nothing = { accounts: 0, lines: 0, requests: 0, jobs: 0, hours: 0, differences: 0, told: [] }
    expect(await look(database.target)).toEqual(nothing)
  })

  test("books that nobody has touched have no differences", async () => {
    await fill(store)
    const all = { accounts: 2, lines: 6, requests: 4, jobs: 0, hours: 1, differences: 0, told: [] }
    expect(await look(database.target)).toEqual(all)
  })

  test.each(corruptions)("$name is told, and nothing else", async ({ by, told }) => {
    await fill(store)
    await spoil(by)
    expect(await look(database.target)).toMatchObject({ differences: told.length, told })
  })

  test("lines of an account that does not exist are told once, by its id", async () => {
    await fill(store)
    const globex = await idOf(store, "globex")
    await spoil(["delete from accounts where name = 'globex'"])
    const { told } = await look(database.target)
    expect(told).toEqual([
      `account id "${globex}", line 2 ("t-2"): expected an account that exists, found none of that id`,
    ])
  })

  test("a request on another account than its line is told", async () => {
    await fill(store)
    await spoil([
      `update requests set account_id = (select id from accounts where name = 'acme') where id = '${id(3)}'`,
    ])
    const { told } = await look(database.target)
    expect(told[0]).toBe(
      `account "acme", request "${id(3)}": expected one ledger line of -0.00009375 on account "acme", found line 5 of -0.00009375 on account "globex"`,
    )
  })

  test("a line that is no charge is not taken for the charge of a request", async () => {
    await fill(store)
    await spoil([`update ledger set reference = '${id(4)}' where id = 6`])
    expect((await look(database.target)).told).toEqual([])
  })

  test.each(["measured", "price"])(
    "a charge whose %s is no JSON is told, and the rest is still checked",
    async (column) => {
      await fill(store)
      await spoil([`update ledger set ${column} = '{' where id = 5`, "update ledger set reference = '' where id = 6"])
      const { told } = await look(database.target)
      expect(told[0]).toBe('account "acme", line 6 (""): expected a reference, found none')
      expect(told[1]).toStartWith(
        `account "globex", line 5 ("${id(3)}"): expected the quantities and prices that it was made by, found some that cannot be read (`,
      )
    },
  )

  test("a price that cannot be charged by is told", async () => {
    await fill(store)
    await spoil(["update ledger set price = '{}' where id = 5"])
    const { told } = await look(database.target)
    expect(told).toHaveLength(1)
    expect(told[0]).toContain("found some that cannot be charged by (")
  })

  test("a request whose quantities are no JSON is told, and the rest is still checked", async () => {
    await fill(store)
    await spoil([`update requests set measured = 'x' where id = '${id(2)}'`])
    const { told } = await look(database.target)
    expect(told[0]).toStartWith(
      `account "acme", request "${id(2)}": expected what was measured, found some that cannot`,
    )
    expect(told.slice(1).map((line) => line.split(",")[1])).toEqual([` ${hour}`, ` ${day}`])
  })

  describe("once old requests were deleted", () => {
    const allDeleted = 1_800_000_000_000

    test("their lines and hours have no differences", async () => {
      await fill(store)
      await deleteRequestsBefore(store, allDeleted, 1000)
      const none = { accounts: 2, lines: 6, requests: 0, jobs: 0, hours: 1, differences: 0, told: [] }
      expect(await look(database.target)).toEqual(none)
    })

    test("an hour of which only a part was deleted has none either", async () => {
      await fill(store)
      const later = requestRecord(await idOf(store, "acme"), { charge: cost, endedAt: 1_790_000_002_000 })
      await postSettlements(store, [later], once)
      expect(await deleteRequestsBefore(store, 1_790_000_001_500, 1000)).toBe(4)
      expect(await look(database.target)).toMatchObject({ requests: 1, told: [] })
    })

    test("what their hours were charged is still checked, by the lines", async () => {
      await fill(store)
      await deleteRequestsBefore(store, allDeleted, 1000)
      await spoil([
        `update usage_hours set charge = 0, requests = 9 where ${globexOnly}`,
        `delete from usage_days where ${globexOnly}`,
        "update usage_hours set charge = 1 where model = 'nothing'",
      ])
      const { told } = await look(database.target)
      expect(told.toSorted()).toEqual([
        'account "acme", hour 2026-09-21T14:00Z, model "nothing", upstream "": expected charge 0, found charge 0.000000001',
        `account "globex", ${day}, ${place}: expected a roll-up of charge 0.00009375, found none`,
        `account "globex", ${hour}, ${place}: expected charge 0.00009375, found charge 0`,
      ])
    })

    test("a later charge without its request is told", async () => {
      await fill(store)
      await deleteRequestsBefore(store, 1_790_000_001_000, 1000)
      await spoil([`delete from requests where id = '${id(3)}'`])
      const { told } = await look(database.target)
      expect(told).toEqual([`account "globex", line 5 ("${id(3)}"): expected its request, found none`])
    })
  })

  test("an account that was deleted with only free requests leaves no difference", async () => {
    await fill(store)
    await giveAccount(store, "visitor")
    const free = requestRecord(await idOf(store, "visitor"), { charge: 0n, price: null })
    await postSettlements(store, [free], once)
    await inTransaction(store, (trx) => deleteAccount(trx, "visitor"))
    expect(await look(database.target)).toMatchObject({ accounts: 2, requests: 5, told: [] })
  })

  test("a finished video, charged apart from its request, leaves no difference", async () => {
    await fill(store)
    const accountId = await idOf(store, "acme")
    const submit = { endpoint: "video", model: "film", upstream: "studio", charge: 0n, price: null } as const
    await postSettlements(store, [requestRecord(accountId, { ...submit, measured: nothingMeasured })], once)
    await finishVideo(store, accountId, { second: "0.1" }, 5_250_000)
    expect(await look(database.target)).toMatchObject({ lines: 7, jobs: 1, hours: 2, told: [] })
  })

  test("whatever was posted in whatever order, nothing differs", async () => {
    for (const name of ["a", "b"]) await giveAccount(store, name)
    const ids = [await idOf(store, "a"), await idOf(store, "b")]
    const priced = (record: RequestRecord): RequestRecord => {
      if (record.charge === 0n) return { ...record, price: null }
      const { amount, price } = chargeFor(anyTariff(record.durationMs), record.measured)
      return { ...record, charge: amount, price }
    }
    let references = 0
    const money = async (amount: bigint) => {
      const line = { account: amount % 2n === 0n ? "a" : "b", amount, reference: `r-${++references}`, note: "n" }
      await inTransaction(store, (trx) => (amount > 0n ? postTopup(trx, line) : postAdjustment(trx, line)))
    }
    const step = fc.oneof(
      fc.bigInt({ min: -(10n ** 12n), max: 10n ** 12n }).filter((amount) => amount !== 0n),
      anyRecords(ids, 5).map((records) => records.map(priced)),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 4 }), async (steps) => {
        for (const each of steps) {
          if (typeof each === "bigint") await money(each)
          else {
            await postSettlements(store, each.slice(2), again)
            await postSettlements(store, each, again)
          }
        }
        expect((await look(database.target)).told).toEqual([])
      }),
      { numRuns: 8 },
    )
    await deleteRequestsBefore(store, 1_790_000_000_000 + 86_400_000, 20)
    expect((await look(database.target)).told).toEqual([])
  })
})

async function finishVideo(store: Store, accountId: string, price: Price, microseconds: number): Promise<void> {
  const tariff = { version: 1, multiplier: "1", price }
  const finishedAt = 1_790_010_000_000
  const route = {
    upstreamId: "u-1",
    upstream: "studio",
    vendor: "kling",
    upstreamModel: "film-1",
    baseUrl: "https://studio.example",
    credentialDigest: null,
    sentSeconds: 5,
  }
  const job = {
    id: newId(),
    accountId,
    keyId: "k",
    keyName: "ci",
    requestId: id(9),
    model: "film",
    withImage: false,
    tariff,
    route,
    attempts: [],
    createdAt: finishedAt - 9000,
    nextLookAt: finishedAt,
  }
  await insertJob(store.db, job, { owner: "here", leaseUntil: finishedAt })
  const settling = await completeJob(store, {
    id: job.id,
    fence: 1,
    finishedAt,
    resultUrl: "https://studio.example/film.mp4",
    needsCredential: false,
    kept: false,
    microseconds,
    secondsSource: "probed",
    charge: chargeFor(tariff, { ...nothingMeasured, microseconds }),
  })
  expect(settling).toBe("settled")
}

/** Prices with and without units of their own, with tiers, and with more digits than a charge keeps. */
function anyTariff(seed: number): Tariff {
  const prices: readonly Tariff["price"][] = [
    { input: "1.25", output: "10" },
    {
      input: "0.333333333333",
      cached_input: "0.1",
      output: "2",
      tiers: [{ aboveInput: 1000, prices: { input: "7" } }],
    },
    { audio_input: "3", audio_output: "5", second: "0.0001", character: "0.000015", cache_write: "0.2" },
    { image: "0.04", request: "0.001", tiers: [{ prices: { image: "0.02" } }] },
  ]
  return { version: seed, multiplier: seed % 3 === 0 ? "1" : "0.85", price: prices[seed % prices.length]! }
}
