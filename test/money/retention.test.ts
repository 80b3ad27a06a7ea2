import { describe, expect, test } from "bun:test"
import { sweepRequests } from "../../src/billing/retention.ts"
import type { Store } from "../../src/store/db.ts"
import { postSettlements } from "../../src/store/settlements.ts"
import { engines, freshStore, giveAccount, slowStart } from "../store/engines.ts"
import { nobodyListens } from "../support/events.ts"
import { sampleRecord } from "../support/request-records.ts"

const hour = 3_600_000

async function kept(store: Store): Promise<readonly string[]> {
  const rows = await store.db.selectFrom("requests").select("id").orderBy("id").execute()
  return rows.map(({ id }) => id)
}

/** Requests of this age, more than one batch of them. */
async function record(store: Store, name: string, count: number, ageMs: number): Promise<readonly string[]> {
  const { id: accountId } = await store.db.selectFrom("accounts").select("id").executeTakeFirstOrThrow()
  const endedAt = Date.now() - ageMs
  const ids = Array.from({ length: count }, (_, index) => `req_${name}${String(index).padStart(5, "0")}`)
  const records = ids.map((id) => sampleRecord(id, { accountId, startedAt: endedAt - 100, endedAt }))
  await postSettlements(store, records, { mayBeKnown: false })
  return ids
}

describe.each(engines)("%s", (engine) => {
  test(
    "what is older than it is kept goes, batch after batch; younger rows, lines and sums stay",
    async () => {
      const { store, close } = await freshStore(engine)
      await giveAccount(store, "acme")
      await record(store, "old", 1200, 3 * hour)
      const young = await record(store, "young", 3, hour)
      const sweep = sweepRequests(store, () => 2 * hour, nobodyListens, 20)
      try {
        while ((await kept(store)).length > young.length) await Bun.sleep(20)
        expect(await kept(store)).toEqual(young)
        const lines = await store.db.selectFrom("ledger").select("id").execute()
        expect(lines).toHaveLength(1203)
        const hours = await store.db.selectFrom("usage_hours").select("requests").execute()
        expect(hours.reduce((sum, { requests }) => sum + requests, 0n)).toBe(1203n)
      } finally {
        await sweep.stop()
        await close()
      }
    },
    slowStart,
  )

  test(
    "kept for good: nothing goes",
    async () => {
      const { store, close } = await freshStore(engine)
      await giveAccount(store, "acme")
      const ids = await record(store, "old", 3, 1000 * hour)
      let asked = 0
      const forGood = () => {
        asked += 1
        return null
      }
      const sweep = sweepRequests(store, forGood, nobodyListens, 5)
      while (asked < 3) await Bun.sleep(5)
      await sweep.stop()
      expect(await kept(store)).toEqual(ids)
      await close()
    },
    slowStart,
  )
})
