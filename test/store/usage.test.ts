import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import fc from "fast-check"
import { deleteAccount } from "../../src/store/accounts.ts"
import { inTransaction } from "../../src/store/db.ts"
import { usageCounters } from "../../src/store/schema.ts"
import { postSettlements } from "../../src/store/settlements.ts"
import { listUsage, type UsageAsk, type UsageGroup, type UsageKey, type UsageRow } from "../../src/store/usage.ts"
import { engines, type FreshStore, freshStore, giveAccount, slowStart } from "./engines.ts"
import { idOf, requestRecord } from "./records.ts"

function hourOf(time: string): number {
  return Date.parse(`${time}:00:00Z`) / 3_600_000
}

/** When, who, what, where, and what it cost. */
const used = [
  ["2026-01-31T23", "anna", "gpt", "east", 1],
  ["2026-02-01T00", "anna", "gpt", "east", 2],
  ["2026-02-01T00", "anna", "gpt", "west", 4],
  ["2026-02-01T00", "bert", "gpt", "east", 8],
  ["2026-02-01T13", "bert", "tts", null, 16],
  ["2026-02-02T05", "anna", "tts", "east", 32],
  ["2028-02-29T23", "bert", "gpt", "east", 64],
] as const
const from = hourOf("2026-01-01T00")
const to = hourOf("2029-01-01T00")

describe.each([...engines])("usage on %s", (engine) => {
  let fresh: FreshStore
  const ids = new Map<string, string>()
  beforeAll(async () => {
    fresh = await freshStore(engine)
    for (const name of ["anna", "bert"]) {
      await giveAccount(fresh.store, name)
      ids.set(name, await idOf(fresh.store, name))
    }
    const records = used.map(([time, account, model, upstream, cost]) =>
      requestRecord(ids.get(account)!, {
        endedAt: hourOf(time) * 3_600_000 + 1_799_999,
        model,
        upstream,
        charge: BigInt(cost),
      }),
    )
    await postSettlements(fresh.store, records, { mayBeKnown: false })
  }, slowStart)
  afterAll(() => fresh.close())

  const list = (ask: Partial<UsageAsk>) =>
    listUsage(fresh.store.db, { from, to, by: "total", group: [], after: null, limit: 100, ...ask })
  const told = (row: UsageRow) => {
    const names = [row.account, row.model, row.upstream].filter((name) => name !== null)
    return [new Date(row.hour * 3_600_000).toISOString().slice(0, 13), ...names, Number(row.sums.charge)].join(" ")
  }
  const shown = async (ask: Partial<UsageAsk>) => (await list(ask)).map(told)

  test("sums over all, by hour, day and month of UTC", async () => {
    expect(await shown({})).toEqual(["2026-01-01T00 127"])
    expect(await shown({ by: "month" })).toEqual(["2026-01-01T00 1", "2026-02-01T00 62", "2028-02-01T00 64"])
    expect(await shown({ by: "day" })).toEqual([
      "2026-01-31T00 1",
      "2026-02-01T00 30",
      "2026-02-02T00 32",
      "2028-02-29T00 64",
    ])
    expect(await shown({ by: "hour" })).toEqual([
      "2026-01-31T23 1",
      "2026-02-01T00 14",
      "2026-02-01T13 16",
      "2026-02-02T05 32",
      "2028-02-29T23 64",
    ])
  })

  test("grouped by any of account, model and upstream, in that order whichever way it is asked", async () => {
    expect(await shown({ group: ["account"] })).toEqual(["2026-01-01T00 anna 39", "2026-01-01T00 bert 88"])
    expect(await shown({ group: ["upstream", "model"] })).toEqual([
      "2026-01-01T00 gpt east 75",
      "2026-01-01T00 gpt west 4",
      "2026-01-01T00 tts  16",
      "2026-01-01T00 tts east 32",
    ])
    expect(await shown({ by: "day", group: ["model", "account"], to: hourOf("2026-02-02T00") })).toEqual([
      "2026-01-31T00 anna gpt 1",
      "2026-02-01T00 anna gpt 6",
      "2026-02-01T00 bert gpt 8",
      "2026-02-01T00 bert tts 16",
    ])
    expect((await list({ group: ["account"] })).map((row) => row.accountId)).toEqual([...ids.values()])
  })

  test("filters narrow it", async () => {
    expect(await shown({ account: ids.get("anna")! })).toEqual(["2026-01-01T00 39"])
    expect(await shown({ model: "tts" })).toEqual(["2026-01-01T00 48"])
    expect(await shown({ upstream: "" })).toEqual(["2026-01-01T00 16"])
    expect(await shown({ model: "gpt", upstream: "east", group: ["account"] })).toEqual([
      "2026-01-01T00 anna 3",
      "2026-01-01T00 bert 72",
    ])
    expect(await shown({ model: "none" })).toEqual([])
  })

  test("a range that begins and ends within days counts exactly the hours in it, at every step", async () => {
    const hours = fc.integer({ min: hourOf("2026-01-30T00"), max: hourOf("2026-02-04T00") })
    await fc.assert(
      fc.asyncProperty(hours, hours, async (one, other) => {
        const range = { from: Math.min(one, other), to: Math.max(one, other) }
        const inside = used.filter(([time]) => hourOf(time) >= range.from && hourOf(time) < range.to)
        const expected = inside.reduce((sum, [, , , , cost]) => sum + cost, 0)
        for (const by of ["hour", "day", "month", "total"] as const) {
          const rows = await list({ ...range, by })
          expect(rows.reduce((sum, { sums }) => sum + Number(sums.charge), 0)).toBe(expected)
        }
      }),
      { numRuns: 30 },
    )
  })

  test("page by page gives the same as all at once", async () => {
    const groups: readonly (readonly UsageGroup[])[] = [[], ["model"], ["account", "model", "upstream"]]
    for (const by of ["hour", "day", "month", "total"] as const) {
      for (const group of groups) {
        const pages: UsageRow[] = []
        let after: UsageKey | null = null
        for (;;) {
          const page: readonly UsageRow[] = await list({ by, group, after, limit: 2 })
          pages.push(...page)
          const last = page.at(-1)
          if (last === undefined) break
          after = last
        }
        expect(pages).toEqual([...(await list({ by, group }))])
      }
    }
  })

  test("every counter is there", async () => {
    const [row] = await list({})
    expect(Object.keys(row!.sums).toSorted()).toEqual(usageCounters.toSorted())
    expect(row!.sums).toMatchObject({ requests: 7n, input_tokens: 70n, output_tokens: 35n, first_tokens: 7n })
  })

  test("what an account used that was deleted since is listed by its id", async () => {
    await giveAccount(fresh.store, "zed")
    const id = await idOf(fresh.store, "zed")
    const endedAt = hourOf("2025-01-01T00") * 3_600_000
    await postSettlements(fresh.store, [requestRecord(id, { charge: 0n, endedAt })], { mayBeKnown: false })
    await inTransaction(fresh.store, (trx) => deleteAccount(trx, "zed"))
    const rows = await list({ from: 0, to: from, group: ["account"] })
    expect(rows.map(({ account, accountId }) => [account, accountId])).toEqual([[id, id]])
  })
})
