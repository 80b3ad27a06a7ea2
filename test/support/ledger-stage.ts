import { openBalances } from "../../src/billing/balances.ts"
import type { Journal } from "../../src/billing/journal.ts"
import { type Ledger, type LedgerTimes, openLedger } from "../../src/billing/ledger.ts"
import type { RequestRecord } from "../../src/core/request-record.ts"
import { nobodyListens } from "./events.ts"

/** What the database says when it is not there. */
export const away = new Error("the database is away")
/** What each account has at first. */
export const opening = 1_000_000n
const quick: LedgerTimes = { mostCommit: 100, retry: 20, mostWait: 150 }

/** A database as the ledger sees it, which can be told what to do. */
function fakeDatabase() {
  const posted: RequestRecord[] = []
  const commits: { ids: string[]; mayBeKnown: boolean }[] = []
  const balances = new Map<string, bigint>()
  const database = {
    posted,
    /** Every try, in order. */
    commits,
    /** Called for each try before it is written. */
    before: async (_records: readonly RequestRecord[]): Promise<void> => {},
    /** Called when it is written, before the ledger hears of it. */
    after: async (_records: readonly RequestRecord[]): Promise<void> => {},
    balanceOf: (accountId: string): bigint => balances.get(accountId) ?? opening,
    async post(records: readonly RequestRecord[], { mayBeKnown }: { readonly mayBeKnown: boolean }) {
      commits.push({ ids: records.map(({ id }) => id), mayBeKnown })
      await database.before(records)
      const isKnown = (record: RequestRecord): boolean => posted.some(({ id }) => id === record.id)
      if (!mayBeKnown && records.some(isKnown)) throw new Error("duplicate key")
      const orphans = records.filter(({ accountId }) => accountId === "gone")
      for (const record of records) {
        if (isKnown(record) || orphans.includes(record)) continue
        posted.push(record)
        balances.set(record.accountId, database.balanceOf(record.accountId) - record.charge)
      }
      await database.after(records)
      const accounts = new Set(records.map(({ accountId }) => accountId).filter((id) => id !== "gone"))
      return { balances: new Map([...accounts].map((id) => [id, database.balanceOf(id)])), orphans }
    },
  }
  return database
}

/** A journal in memory, whose disk can be full. */
export function fakeJournal() {
  const kept: RequestRecord[] = []
  const aside: { id: string; why: string }[] = []
  const refuseIfFull = (): void => {
    if (journal.full) throw new Error("no space left on the disk")
  }
  const journal = {
    full: false,
    kept,
    aside,
    async append(records: readonly RequestRecord[]) {
      refuseIfFull()
      kept.push(...records)
    },
    peek: async (most: number) => kept.slice(0, most),
    async drop(count: number) {
      kept.splice(0, count)
    },
    async setAside({ id }: RequestRecord, why: string) {
      refuseIfFull()
      aside.push({ id, why })
    },
    get size() {
      return kept.length
    },
    pendingByAccount() {
      const sums = new Map<string, bigint>()
      for (const { accountId, charge } of kept) sums.set(accountId, (sums.get(accountId) ?? 0n) + charge)
      return sums
    },
    async close() {},
  }
  return journal
}

const open: Ledger[] = []

/** Ends what is still at work. */
export async function closeLedgers(): Promise<void> {
  for (const ledger of open.splice(0)) await ledger.close()
}

/** A ledger over a database that can be told what to do; `told` is what an operator hears of it. */
export function stage(journal: Journal = fakeJournal()) {
  const database = fakeDatabase()
  const told: unknown[] = []
  const balances = openBalances(async (ids) => new Map(ids.map((id) => [id, database.balanceOf(id)])))
  const ledger = openLedger(
    {
      post: database.post,
      isUnavailable: (error) => error === away,
      journal,
      balances,
      events: {
        ...nobodyListens,
        journaling: (active) => told.push({ journaling: active }),
        chargesStuck: (stuck) => told.push({ stuck }),
        chargeUnposted: ({ id }, why) => told.push({ unposted: id, why }),
        recordsDropped: (count) => told.push({ dropped: count }),
      },
    },
    quick,
  )
  open.push(ledger)
  return { database, balances, ledger, told }
}
