import { afterEach, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { eventually } from "../../test/support/gateway.ts"
import { away, closeLedgers, fakeJournal, opening, stage } from "../../test/support/ledger-stage.ts"
import { sampleRecord } from "../../test/support/request-records.ts"
import { GatewayError } from "../core/errors.ts"
import type { RequestRecord } from "../core/request-record.ts"
import { openJournal } from "./journal.ts"
import type { Ledger } from "./ledger.ts"

afterEach(closeLedgers)

const record = (id: string, changes: Partial<RequestRecord> = {}) => sampleRecord(id, { charge: 10n, ...changes })
const settleAll = (ledger: Ledger, ids: readonly string[]) => Promise.all(ids.map((id) => ledger.settle(record(id))))
const idsOf = (records: readonly RequestRecord[]): string[] => records.map(({ id }) => id)

/** The code of the refusal that work ends in. */
async function refusal(work: () => void | Promise<void>): Promise<string> {
  try {
    await work()
  } catch (error) {
    if (error instanceof GatewayError) return `${error.status} ${error.code}`
    throw error
  }
  return "admitted"
}

describe("charges that come together", () => {
  test("share a few commits, in the order they came", async () => {
    const { ledger, database, told } = stage()
    const ids = Array.from({ length: 1000 }, (_, n) => `r${n}`)
    await settleAll(ledger, ids)
    expect(idsOf(database.posted)).toEqual(ids)
    expect(database.commits.length).toBeLessThanOrEqual(5)
    expect(database.commits.every(({ mayBeKnown }) => !mayBeKnown)).toBeTrue()
    expect(told).toEqual([])
  })

  test("those that come while a commit is under way go with the next one", async () => {
    const { ledger, database } = stage()
    const { promise, resolve } = Promise.withResolvers<void>()
    database.before = () => promise
    const first = ledger.settle(record("r0"))
    await eventually(() => database.commits.length === 1)
    const rest = settleAll(ledger, ["r1", "r2", "r3"])
    resolve()
    await Promise.all([first, rest])
    expect(database.commits.map(({ ids }) => ids)).toEqual([["r0"], ["r1", "r2", "r3"]])
  })

  test("a charge is durable when its promise says so, and not before", async () => {
    const { ledger, database } = stage()
    const { promise, resolve } = Promise.withResolvers<void>()
    database.after = () => promise
    let isDurable = false
    const settled = Promise.resolve(ledger.settle(record("r0"))).then(() => {
      isDurable = true
    })
    await eventually(() => database.posted.length === 1)
    await Bun.sleep(10)
    expect(isDurable).toBeFalse()
    resolve()
    await settled
  })

  test("a request without a charge is put on record, and nobody waits for it", async () => {
    const { ledger, database } = stage()
    expect(ledger.settle(record("r0", { charge: 0n, price: null }))).toBeUndefined()
    await eventually(() => database.posted.length === 1)
  })
})

describe("admission", () => {
  test("an account with nothing is refused, and is told not to try again", async () => {
    const { ledger, database } = stage()
    expect(await refusal(() => ledger.admit("acme"))).toBe("admitted")
    await ledger.settle(record("r0", { charge: opening }))
    expect(database.balanceOf("acme")).toBe(0n)
    const error = await Promise.try(() => ledger.admit("acme")).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: "insufficient_balance", status: 402, headers: { "x-should-retry": "false" } })
  })

  test("a charge counts from the moment it is made, long before it is posted", async () => {
    const { ledger, database } = stage()
    await ledger.admit("acme")
    database.before = async () => void (await Bun.sleep(30))
    const settled = ledger.settle(record("r0", { charge: opening }))
    expect(await refusal(() => ledger.admit("acme"))).toBe("402 insufficient_balance")
    await settled
    expect(await refusal(() => ledger.admit("acme"))).toBe("402 insufficient_balance")
  })

  test("what a journal kept from before counts too", async () => {
    const journal = fakeJournal()
    journal.kept.push(record("r0", { charge: opening }))
    const { ledger, database } = stage(journal)
    expect(await refusal(() => ledger.admit("acme"))).toBe("402 insufficient_balance")
    await eventually(() => database.posted.length === 1)
    expect(journal.size).toBe(0)
    expect(await refusal(() => ledger.admit("acme"))).toBe("402 insufficient_balance")
  })
})

describe("a database that is away", () => {
  test("charges are kept in the journal, and posted once and in order when it is back", async () => {
    const journal = fakeJournal()
    const { ledger, database, told, balances } = stage(journal)
    await ledger.admit("acme")
    database.before = () => Promise.reject(away)
    await settleAll(ledger, ["r0", "r1"])
    await settleAll(ledger, ["r2"])
    expect(idsOf(journal.kept)).toEqual(["r0", "r1", "r2"])
    expect(database.posted).toEqual([])
    expect(balances.of("acme")).toBe(opening - 30n)
    database.before = async () => {}
    await eventually(() => database.posted.length === 3)
    await ledger.settle(record("r3"))
    expect(idsOf(database.posted)).toEqual(["r0", "r1", "r2", "r3"])
    expect(journal.size).toBe(0)
    expect(told).toEqual([{ journaling: true }, { journaling: false }])
    expect(balances.of("acme")).toBe(opening - 40n)
    expect(database.balanceOf("acme")).toBe(opening - 40n)
  })

  test("what comes before the journal is empty goes behind it", async () => {
    const journal = fakeJournal()
    const { ledger, database } = stage(journal)
    database.before = () => Promise.reject(away)
    await settleAll(ledger, ["r0"])
    const { promise, resolve } = Promise.withResolvers<void>()
    database.before = () => promise
    await eventually(() => database.commits.length === 2)
    await settleAll(ledger, ["r1"])
    resolve()
    await eventually(() => database.posted.length === 2)
    expect(idsOf(database.posted)).toEqual(["r0", "r1"])
  })

  test("a commit whose end nobody knows is looked for, and not made twice", async () => {
    const journal = fakeJournal()
    const { ledger, database, balances } = stage(journal)
    await ledger.admit("acme")
    database.after = async () => {
      database.after = async () => {}
      throw away
    }
    await settleAll(ledger, ["r0", "r1"])
    await eventually(() => journal.size === 0 && database.commits.length === 2)
    await ledger.settle(record("r2"))
    expect(idsOf(database.posted)).toEqual(["r0", "r1", "r2"])
    expect(database.commits.map(({ mayBeKnown }) => mayBeKnown)).toEqual([false, true, false])
    expect([balances.of("acme"), database.balanceOf("acme")]).toEqual([opening - 30n, opening - 30n])
  })

  test("a commit that takes too long counts as one, also if it goes through later", async () => {
    const journal = fakeJournal()
    const { ledger, database, told } = stage(journal)
    const { promise, resolve } = Promise.withResolvers<void>()
    database.before = async () => {
      database.before = async () => {}
      await promise
    }
    await ledger.settle(record("r0"))
    expect({ kept: idsOf(journal.kept), posted: database.posted }).toEqual({ kept: ["r0"], posted: [] })
    await eventually(() => journal.size === 0)
    resolve()
    await Bun.sleep(10)
    expect(idsOf(database.posted)).toEqual(["r0"])
    expect(told).toEqual([{ journaling: true }, { journaling: false }])
  })

  test("a real journal keeps charges over a restart, and they are posted once", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tollgate-ledger-"))
    try {
      const first = await openJournal(folder, () => {})
      const before = stage(first)
      before.database.after = () => Promise.reject(away)
      await settleAll(before.ledger, ["r0", "r1"])
      await closeLedgers()
      await first.close()
      const second = await openJournal(folder, () => {})
      const { database, balances, ledger } = stage(second)
      // The first instance's commit had gone through.
      await database.post(before.database.posted, { mayBeKnown: false })
      await ledger.admit("acme")
      await eventually(() => second.size === 0)
      expect(idsOf(database.posted)).toEqual(["r0", "r1"])
      expect(balances.of("acme")).toBe(opening - 20n)
      await closeLedgers()
      await second.close()
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe("a record that the database will never take", () => {
  const refuse = (id: string) => async (records: readonly RequestRecord[]) => {
    if (idsOf(records).includes(id)) throw new Error("value out of range")
  }

  test("is set aside with the reason, and the others of its commit go through", async () => {
    const journal = fakeJournal()
    const { ledger, database, balances, told } = stage(journal)
    await ledger.admit("acme")
    database.before = refuse("r1")
    await settleAll(ledger, ["r0", "r1", "r2"])
    expect(idsOf(database.posted)).toEqual(["r0", "r2"])
    expect(journal.aside).toEqual([{ id: "r1", why: "value out of range" }])
    expect(told).toEqual([{ unposted: "r1", why: "value out of range" }])
    expect(balances.of("acme")).toBe(opening - 20n)
    await ledger.settle(record("r3"))
    expect(database.commits.at(-1)).toEqual({ ids: ["r3"], mayBeKnown: false })
  })

  test("does not hold up a journal either", async () => {
    const journal = fakeJournal()
    journal.kept.push(record("r0"), record("r1"), record("r2"))
    const { database, balances, ledger } = stage(journal)
    database.before = refuse("r1")
    await eventually(() => journal.size === 0)
    expect(idsOf(database.posted)).toEqual(["r0", "r2"])
    expect(journal.aside.map(({ id }) => id)).toEqual(["r1"])
    await ledger.admit("acme")
    expect(balances.of("acme")).toBe(opening - 20n)
  })

  test("a database that goes away between it and the others makes nothing count twice", async () => {
    const journal = fakeJournal()
    const { ledger, database, balances } = stage(journal)
    await ledger.admit("acme")
    database.before = async (records) => {
      await refuse("r1")(records)
      if (database.commits.length === 4) throw away
    }
    await settleAll(ledger, ["r0", "r1", "r2"])
    await eventually(() => database.posted.length === 2 && journal.size === 0)
    expect(idsOf(database.posted)).toEqual(["r0", "r2"])
    expect([balances.of("acme"), database.balanceOf("acme")]).toEqual([opening - 20n, opening - 20n])
  })

  test("charges of an account that is gone are set aside", async () => {
    const journal = fakeJournal()
    const { ledger, database } = stage(journal)
    await Promise.all([ledger.settle(record("r0", { accountId: "gone" })), ledger.settle(record("r1"))])
    expect(idsOf(database.posted)).toEqual(["r1"])
    expect(journal.aside).toEqual([{ id: "r0", why: "its account does not exist any more" }])
  })
})

describe("when neither the database nor the journal takes charges", () => {
  async function stuckStage() {
    const journal = fakeJournal()
    const scene = stage(journal)
    await scene.ledger.admit("acme")
    scene.database.before = () => Promise.reject(away)
    journal.full = true
    const settled = Promise.resolve(scene.ledger.settle(record("r0"))).then(
      () => "durable",
      (error: unknown) => (error instanceof GatewayError ? error.code : error),
    )
    await eventually(() => scene.told.some((event) => JSON.stringify(event) === '{"stuck":true}'))
    return { ...scene, journal, settled }
  }

  test("nobody is admitted, and the response ends as an error after a while; the charge is posted once all the same", async () => {
    const { ledger, database, journal, settled, told } = await stuckStage()
    expect(await refusal(() => ledger.admit("acme"))).toBe("503 backend_unavailable")
    expect(await settled).toBe("backend_unavailable")
    database.before = async () => {}
    await eventually(() => database.posted.length === 1)
    expect(await refusal(() => ledger.admit("acme"))).toBe("admitted")
    await ledger.settle(record("r1"))
    expect(idsOf(database.posted)).toEqual(["r0", "r1"])
    expect(journal.kept).toEqual([])
    expect(told.at(-1)).toEqual({ stuck: false })
  })

  test("a journal that works again is enough", async () => {
    const { ledger, journal, database, settled, told } = await stuckStage()
    journal.full = false
    expect(await settled).toBe("durable")
    expect(await refusal(() => ledger.admit("acme"))).toBe("admitted")
    expect(idsOf(journal.kept)).toEqual(["r0"])
    expect(told.at(-1)).toEqual({ stuck: false })
    database.before = async () => {}
    await eventually(() => database.posted.length === 1)
  })

  test("a database that is back in time is enough, though it may have the charge already", async () => {
    const { database, settled } = await stuckStage()
    database.before = async () => {}
    expect(await settled).toBe("durable")
    expect(database.commits.at(-1)).toEqual({ ids: ["r0"], mayBeKnown: true })
    expect(idsOf(database.posted)).toEqual(["r0"])
  })

  test("who waits behind the first is told as well", async () => {
    const { ledger, settled, database } = await stuckStage()
    const later = Promise.resolve(ledger.settle(record("r1"))).catch((error: unknown) => error)
    expect(await settled).toBe("backend_unavailable")
    expect(await later).toMatchObject({ code: "backend_unavailable" })
    database.before = async () => {}
    await eventually(() => database.posted.length === 2)
    expect(idsOf(database.posted)).toEqual(["r0", "r1"])
  })
})

describe("closing", () => {
  test("waits until everything is in the database", async () => {
    const { ledger, database } = stage()
    database.before = async () => void (await Bun.sleep(20))
    const ids = Array.from({ length: 600 }, (_, n) => `r${n}`)
    const settled = settleAll(ledger, ids)
    void ledger.settle(record("free", { charge: 0n }))
    await ledger.close()
    expect(idsOf(database.posted)).toEqual([...ids, "free"])
    await settled
  })

  test("leaves in the journal what the database does not take", async () => {
    const journal = fakeJournal()
    const { ledger, database } = stage(journal)
    database.before = () => Promise.reject(away)
    const settled = ledger.settle(record("r0"))
    await ledger.close()
    await settled
    expect(idsOf(journal.kept)).toEqual(["r0"])
  })

  test("tells of what could be kept nowhere, and ends all the same", async () => {
    const journal = fakeJournal()
    const { ledger, database, told } = stage(journal)
    database.before = () => Promise.reject(away)
    journal.full = true
    const settled = Promise.resolve(ledger.settle(record("r0"))).catch(() => "refused")
    await ledger.close()
    expect(await settled).toBe("refused")
    expect(told).toContainEqual({ unposted: "r0", why: "it could be kept nowhere" })
  })
})
