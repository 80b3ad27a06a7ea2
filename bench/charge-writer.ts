/**
 * A process of its own that writes charges through the ledger as fast as it takes them, and prints what they cost as JSON.
 * Arguments: its folder, for how many milliseconds, the address of a Postgres database or "" for SQLite, the server's pid.
 */
import { join } from "node:path"
import { openBalances } from "../src/billing/balances.ts"
import { openJournal } from "../src/billing/journal.ts"
import { type Ledger, openLedger } from "../src/billing/ledger.ts"
import { chargeFor } from "../src/core/price.ts"
import type { RequestRecord } from "../src/core/request-record.ts"
import { tellEvents } from "../src/events.ts"
import { newRequestId } from "../src/lib/ids.ts"
import { openLog } from "../src/log.ts"
import { openMetrics } from "../src/metrics.ts"
import { accountIdOf, saveAccount } from "../src/store/accounts.ts"
import { inTransaction, openStore, type Store } from "../src/store/db.ts"
import { isUnavailable } from "../src/store/errors.ts"
import { balancesOf } from "../src/store/ledger.ts"
import { savePlan } from "../src/store/plans.ts"
import { postSettlements } from "../src/store/settlements.ts"
import type { Written } from "./charges.ts"
import { cpuMicros, cpuMicrosEver } from "./cpu.ts"

const AT_ONCE = 128
const ACCOUNTS = 8
const WARM_UP_MS = 700
const TARIFF = { price: { input: "1.25", output: "10" }, multiplier: "1", version: 1 }

const [folder = "", ms = "", url = "", serverPid = ""] = process.argv.slice(2)
const store = await openStore(
  url === "" ? { kind: "sqlite", file: join(folder, "tollgate.db") } : { kind: "postgres", url },
)
const accounts = await makeAccounts(store)
const journal = await openJournal(join(folder, "journal"), fail)
let commits = 0
const ledger = openLedger({
  async post(records, options) {
    commits += 1
    return postSettlements(store, records, options)
  },
  isUnavailable,
  journal,
  balances: openBalances((ids) => balancesOf(store.db, ids)),
  events: tellEvents(openLog("error"), openMetrics()),
})
await writeFor(ledger, WARM_UP_MS)
console.log(JSON.stringify(await measure(Number(ms))))
await ledger.close()
if (journal.size > 0) fail("charges are left in the journal")
await journal.close()
await store.close()

async function makeAccounts({ db }: Store): Promise<readonly string[]> {
  const names = Array.from({ length: ACCOUNTS }, (_, number) => `account-${number}`)
  await inTransaction(store, async (trx) => {
    await savePlan(trx, { name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" })
    for (const name of names) await saveAccount(trx, { name, plan: "default", concurrency: null })
  })
  return Promise.all(names.map((name) => accountIdOf(db, name, "bench")))
}

async function measure(forMs: number): Promise<Written> {
  const before = {
    commits,
    at: performance.now(),
    own: cpuMicros(process.pid),
    server: cpuMicrosEver(Number(serverPid)),
  }
  const charges = await writeFor(ledger, forMs)
  return {
    charges,
    commits: commits - before.commits,
    seconds: (performance.now() - before.at) / 1000,
    micros: cpuMicros(process.pid) - before.own,
    serverMicros: cpuMicrosEver(Number(serverPid)) - before.server,
  }
}

/** So many requests at once, each followed by the next one as soon as its charge is durable. */
async function writeFor(books: Ledger, forMs: number): Promise<number> {
  const until = performance.now() + forMs
  let charges = 0
  const write = async (number: number): Promise<void> => {
    while (performance.now() < until) {
      await books.settle(recordOf(accounts[number % ACCOUNTS] ?? "", number + charges))
      charges += 1
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, (_, number) => write(number)))
  return charges
}

function recordOf(accountId: string, number: number): RequestRecord {
  const endedAt = Date.now()
  const tokens = { input: 100 + (number % 900), output: 240, cachedInput: 0, cacheWrite: 0, reasoning: 0 }
  const measured = {
    tokens: { ...tokens, audioInput: 0, audioOutput: 0 },
    images: null,
    microseconds: null,
    characters: null,
    searchUnits: null,
    size: null,
    quality: null,
  }
  const { amount, price } = chargeFor(TARIFF, measured)
  const upstream = { upstream: "answer", upstreamModel: "bench-upstream-model" }
  return {
    id: newRequestId(),
    accountId,
    keyId: "key",
    keyName: "bench",
    endpoint: "chat",
    model: `model-${number % 4}`,
    ...upstream,
    stream: false,
    attempts: [
      {
        ...upstream,
        why: "first by priority",
        startedAt: 0.4,
        endedAt: 35.2,
        outcome: "answered",
        status: 200,
        detail: null,
      },
    ],
    status: 200,
    error: null,
    ending: "completed",
    startedAt: endedAt - 35,
    endedAt,
    firstTokenMs: 31,
    durationMs: 35,
    measured,
    estimated: false,
    usageInvalid: false,
    price,
    charge: amount,
  }
}

function fail(problem: string): never {
  throw new Error(problem)
}
