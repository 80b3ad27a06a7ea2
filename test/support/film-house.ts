import { Database } from "bun:sqlite"
import { join } from "node:path"
import type { Simulator } from "../../simulator/simulator.ts"
import type { SimulatedVendor } from "../../simulator/vendor.ts"
import type { VideoJob } from "../../src/core/video-job.ts"
import { type DatabaseTarget, openStoreForReading } from "../../src/store/db.ts"
import { jobOf } from "../../src/store/jobs.ts"
import type { LedgerLine } from "../../src/store/ledger.ts"
import { allLines } from "../../src/store/reconcile-reads.ts"
import type { Reader } from "../../src/store/schema.ts"
import { keyOf } from "./accounts.ts"
import { administer } from "./postgres.ts"
import { type Instance, until, type Variables, type Workbench } from "./workbench.ts"

/** Vendors of films in their three kinds: one finds a job by our id, one does not tell lengths, one has its films behind the key. */
export const filmVendors = {
  kling: { model: "kling-v3", seconds: [3, 5, 8, 11] },
  runway: { model: "gen4.5", seconds: [2, 5, 7, 10] },
  "openai-compatible": { model: "sora-2", seconds: [4, 8, 12] },
} as const
export type FilmVendorName = keyof typeof filmVendors
export const filmVendorNames = ["kling", "runway", "openai-compatible"] as const satisfies readonly FilmVendorName[]

/** In 1e-9 dollar for a second. */
export const secondCost = 70_000_000n
const account = "north"
export const filmKey = keyOf(account)

export interface FilmHouseOptions {
  readonly simulator: Pick<Simulator, "url" | "vendor"> | FarSimulator
  /** Null: SQLite in the data folder. */
  readonly databaseUrl: string | null
  /** Where the vendors are reached, if not at the simulator itself. */
  readonly origin?: string
  /** How long a submit may take. */
  readonly submitMs?: number
}

/** A simulator in another process. */
export interface FarSimulator {
  readonly url: string
}

/** One database and the processes of `tollgate serve` on it; each vendor's model is named like the vendor. */
export interface FilmHouse {
  readonly target: DatabaseTarget
  vendor(name: FilmVendorName): SimulatedVendor
  start(): Promise<Instance>
  /** Everything in the books, while instances run or when none does. */
  books(): Promise<FilmBooks>
  job(id: string): Promise<VideoJob>
  /** How many jobs are not over. */
  openJobs(): Promise<number>
  /** Changes rows as time would: for what would take too long to wait for. */
  change(statement: string): Promise<void>
  /** Nobody's claim counts any longer. */
  endLeases(): Promise<void>
  reconcile(): Promise<{ readonly code: number | null; readonly out: string }>
}

export interface FilmBooks {
  readonly jobs: readonly VideoJob[]
  readonly lines: readonly LedgerLine[]
}

let houses = 0

export function filmHouse(bench: Workbench, options: FilmHouseOptions): FilmHouse {
  const { simulator, databaseUrl } = options
  const number = ++houses
  const data = bench.freshData()
  const target: DatabaseTarget =
    databaseUrl === null ? { kind: "sqlite", file: join(data, "tollgate.db") } : { kind: "postgres", url: databaseUrl }
  const env: Variables =
    databaseUrl === null
      ? {}
      : { DATABASE_URL: databaseUrl, TOLLGATE_MASTER_KEY: "film-house-master-key-0123456789abcdef" }
  const config = bench.file(`films-${number}.json`, JSON.stringify(configOf(number, options)))
  const change = (statement: string): Promise<void> => changeRows(target, statement)
  return {
    target,
    vendor(name) {
      if (!("vendor" in simulator)) throw new Error("the simulator is in another process")
      return simulator.vendor(ownName(name, number, simulator))
    },
    start() {
      const args = ["serve", "--port", "0", "--config", config, "--data", data]
      return bench.start(args, { TOLLGATE_LOG: "warn", TOLLGATE_ALLOW_PRIVATE_ADDRESSES: "true", ...env })
    },
    books: () =>
      reading(target, async (db) => ({
        jobs: (await db.selectFrom("jobs").selectAll().orderBy("created_at").orderBy("id").execute()).map(jobOf),
        lines: await Array.fromAsync(allLines(db)),
      })),
    job: (id) =>
      reading(target, async (db) =>
        jobOf(await db.selectFrom("jobs").selectAll().where("id", "=", id).executeTakeFirstOrThrow()),
      ),
    async openJobs() {
      const over = ["completed", "failed"] as const
      const counted = reading(target, (db) =>
        db
          .selectFrom("jobs")
          .select(({ fn }) => fn.countAll<bigint>().as("open"))
          .where("state", "not in", over)
          .executeTakeFirstOrThrow(),
      )
      return Number((await counted).open)
    },
    change,
    endLeases: () => change("update jobs set lease_until = 1 where lease_until is not null"),
    reconcile: () => bench.run(["reconcile", "--data", data], env),
  }
}

/** Each house has vendors of its own, as a simulator in another process has only one house. */
function ownName(name: FilmVendorName, house: number, simulator: FilmHouseOptions["simulator"]): string {
  return "vendor" in simulator ? `${name}-${house}` : name
}

function configOf(number: number, { simulator, origin, submitMs = 20_000 }: FilmHouseOptions): object {
  return {
    upstreams: filmVendorNames.map((name) => ({
      name,
      vendor: name,
      base_url: `${origin ?? simulator.url}/${ownName(name, number, simulator)}`,
      api_key: `credential-of-${name}`,
      timeouts: { non_stream: `${submitMs}ms` },
    })),
    models: filmVendorNames.map((name) => ({
      name,
      price: { second: "0.07" },
      routes: [{ upstream: name, model: filmVendors[name].model }],
    })),
    plans: [{ name: "default", concurrency: 0, models: ["*"] }],
    accounts: [{ name: account, plan: "default", balance: 100_000, keys: [{ name: "k", key: filmKey }] }],
  }
}

async function reading<T>(target: DatabaseTarget, work: (db: Reader) => Promise<T>): Promise<T> {
  const store = await openStoreForReading(target)
  try {
    return await store.snapshot(work)
  } finally {
    await store.close()
  }
}

async function changeRows(target: DatabaseTarget, statement: string): Promise<void> {
  if (target.kind === "postgres") {
    await administer(target.url, (sql) => sql.unsafe(statement))
    return
  }
  const database = new Database(target.file)
  database.run("pragma busy_timeout = 5000")
  database.run(statement)
  database.close()
}

/** What a client was told. */
export interface Told {
  readonly status: number
  readonly body: FilmView
}

export interface FilmView {
  readonly id?: string
  readonly status?: string
  readonly seconds?: number
  readonly error?: { readonly message: string; readonly code?: string }
}

export interface FilmWish {
  readonly model: FilmVendorName
  readonly prompt: string
  readonly duration?: number
}

const headers = { authorization: `Bearer ${filmKey}`, "content-type": "application/json" }

export async function askForFilm(url: string, wish: FilmWish): Promise<Told> {
  const response = await fetch(`${url}/v1/videos`, { method: "POST", headers, body: JSON.stringify(wish) })
  return { status: response.status, body: (await response.json()) as FilmView }
}

export async function lookForFilm(url: string, id: string): Promise<FilmView> {
  const response = await fetch(`${url}/v1/videos/${id}`, { headers })
  return (await response.json()) as FilmView
}

/** The film's last word, as a client that asks again and again gets it. */
export async function lastWord(url: string, id: string, patienceMs = 30_000): Promise<FilmView> {
  return until(async () => {
    const view = await lookForFilm(url, id)
    return (view.status === "completed" || view.status === "failed") && view
  }, patienceMs)
}

/** What is wrong with the books of films, in words: charges and completed jobs are one to one, at what the seconds cost. */
export function filmFaults({ jobs, lines }: FilmBooks): readonly string[] {
  const faults: string[] = []
  const byReference = Map.groupBy(lines, ({ reference }) => reference)
  for (const job of jobs) {
    const charges = byReference.get(`video_${job.id}`) ?? []
    byReference.delete(`video_${job.id}`)
    const told = `job ${job.id} (${job.model}, ${job.state})`
    if (job.state === "completed") {
      const cost = (BigInt(job.microseconds ?? 0) * secondCost) / 1_000_000n
      if (charges.length !== 1) faults.push(`${told} has ${charges.length} charges`)
      if (charges.some(({ amount }) => amount !== -cost) || job.charge !== cost)
        faults.push(`${told} costs not ${cost}`)
    } else if (job.state !== "failed") faults.push(`${told} is open: ${job.trouble}`)
    else if (charges.length > 0 || job.charge !== 0n) faults.push(`${told} is charged`)
  }
  let balance = 0n
  for (const { reference, amount, balanceAfter } of lines) {
    balance += amount
    if (balance !== balanceAfter) faults.push(`${reference} leaves ${balanceAfter} instead of ${balance}`)
  }
  for (const [reference, [line]] of byReference) {
    if (line?.kind === "charge") faults.push(`${reference} charges a job that there is not`)
  }
  return faults
}
