import { describe, expect, test } from "bun:test"
import { nothingMeasured } from "../core/measured.ts"
import { jobReference } from "../store/ledger.ts"
import type { Books, FoundJob, FoundLine, FoundRequest, PostedCharge, StoredUsage } from "../store/reconcile-reads.ts"
import { reconcile } from "./reconcile.ts"

const tenCents = 100_000_000n

interface Rows {
  readonly lines?: readonly FoundLine[]
  readonly requests?: readonly FoundRequest[]
  readonly jobs?: readonly FoundJob[]
  readonly hours?: readonly StoredUsage[]
  readonly days?: readonly StoredUsage[]
  readonly requestsKeptSince?: number
}

async function differencesIn(rows: Rows) {
  const { lines = [], requests = [], jobs = [], hours = [], days = [], requestsKeptSince = 0 } = rows
  const asked: number[] = []
  const books: Books = {
    accounts: new Map([["a1", "acme"]]),
    requestsKeptSince,
    lines: () => streamOf(lines),
    requests: () => streamOf(requests),
    jobs: () => streamOf(jobs),
    usage: (span) => streamOf(span === "hour" ? hours : days),
    async requestsAmong(ids) {
      asked.push(ids.length)
      return new Set(requests.map(({ id }) => id).filter((id) => ids.includes(id)))
    },
    async jobsAmong(ids) {
      asked.push(ids.length)
      return new Map(jobs.filter(({ id }) => ids.includes(id)).map(({ id, state }) => [id, state]))
    },
    async chargesAmong(references): Promise<readonly PostedCharge[]> {
      asked.push(references.length)
      return lines.filter(({ kind, reference }) => kind === "charge" && references.includes(reference))
    },
  }
  const told: string[] = []
  const reconciled = await reconcile(books, (difference) => told.push(difference))
  return { told, asked, reconciled }
}

async function* streamOf<T>(all: readonly T[]): AsyncGenerator<T> {
  yield* all
}

/** The n-th charge of ten cents for a call; balances go on from nothing. */
function charge(n: number, changes: Partial<FoundLine> = {}): FoundLine {
  return {
    id: BigInt(n),
    accountId: "a1",
    kind: "charge",
    amount: -tenCents,
    balanceAfter: -tenCents * BigInt(n),
    reference: `req_${n}`,
    note: null,
    measured: { model: "m", upstream: "u", endpoint: "chat", measured: nothingMeasured },
    price: { version: 1, multiplier: "1", units: { request: "0.1" } },
    estimated: false,
    usageInvalid: false,
    createdAt: 1000,
    ...changes,
  }
}

function request(n: number, changes: Partial<FoundRequest> = {}): FoundRequest {
  return {
    id: `req_${n}`,
    accountId: "a1",
    keyId: "k",
    keyName: "ci",
    endpoint: "chat",
    model: "m",
    upstream: "u",
    upstreamModel: "m",
    stream: false,
    attempts: [],
    status: 200,
    error: null,
    ending: "completed",
    startedAt: 0,
    endedAt: 1000,
    firstTokenMs: null,
    durationMs: 1000,
    measured: nothingMeasured,
    estimated: false,
    usageInvalid: false,
    price: { version: 1, multiplier: "1", units: { request: "0.1" } },
    charge: tenCents,
    ...changes,
  }
}

/** A row of the roll-up over so many requests and charges like those above. */
function usage(requests: number, charges: number, changes: Partial<StoredUsage> = {}): StoredUsage {
  const none = { failures: 0n, estimated: 0n, images: 0n, microseconds: 0n, characters: 0n }
  const noInput = { input_tokens: 0n, cached_input_tokens: 0n, cache_write_tokens: 0n, audio_input_tokens: 0n }
  const noOutput = { output_tokens: 0n, reasoning_tokens: 0n, audio_output_tokens: 0n }
  const sums = {
    ...none,
    ...noInput,
    ...noOutput,
    requests: BigInt(requests),
    charge: tenCents * BigInt(charges),
    duration_ms: 1000n * BigInt(requests),
    first_token_ms: 0n,
    first_tokens: 0n,
  }
  return { time: 0, accountId: "a1", model: "m", upstream: "u", sums, ...changes }
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n + 1)

test("many more rows than are looked at together: nothing is lost between, and lookups stay small", async () => {
  const count = 1700
  const { told, asked, reconciled } = await differencesIn({
    lines: numbers(count).map((n) => charge(n)),
    requests: numbers(count).map((n) => request(n)),
    hours: [usage(count, count)],
    days: [usage(count, count)],
  })
  expect(told).toEqual([])
  expect(reconciled).toEqual({ accounts: 1, lines: count, requests: count, jobs: 0, hours: 1, differences: 0 })
  expect(Math.max(...asked)).toBeLessThanOrEqual(500)
  expect(asked.reduce((sum, each) => sum + each, 0)).toBe(2 * count)
})

test("a wrong line is told wherever it stands in the stream", async () => {
  for (const wrong of [1, 499, 500, 501, 1000, 1100]) {
    const { told } = await differencesIn({
      lines: numbers(1100).map((n) => charge(n, n === wrong ? { price: null } : {})),
      requests: numbers(1100).map((n) => request(n)),
      hours: [usage(1100, 1100)],
      days: [usage(1100, 1100)],
    })
    expect(told).toEqual([
      `account "acme", line ${wrong} ("req_${wrong}"): expected the quantities and prices that it was made by, found none`,
    ])
  }
})

test("a request charged twice is told with both lines", async () => {
  const { told } = await differencesIn({
    lines: [charge(1), charge(2, { reference: "req_1" })],
    requests: [request(1)],
    hours: [usage(1, 2)],
    days: [usage(1, 2)],
  })
  expect(told).toEqual([
    'account "acme", request "req_1": expected one ledger line of -0.1 on account "acme", ' +
      'found line 1 of -0.1 on account "acme" and line 2 of -0.1 on account "acme"',
  ])
})

describe("charges that need no request of their own", () => {
  const video = { model: "m", upstream: "u", endpoint: "video", measured: nothingMeasured } as const
  const lines: readonly [string, Partial<FoundLine>][] = [
    ["a video's", { measured: video }],
    ["one that is no request's", { reference: "job_1" }],
    ["one from before requests were kept", { createdAt: 999 }],
  ]
  test.each(lines)("%s", async (_, changes) => {
    const { told } = await differencesIn({
      lines: [charge(1, changes)],
      hours: [usage(0, 1)],
      days: [usage(0, 1)],
      requestsKeptSince: changes.createdAt === undefined ? 0 : 1000,
    })
    expect(told).toEqual([])
  })

  test("any other must have one", async () => {
    const { told } = await differencesIn({ lines: [charge(1)], hours: [usage(0, 1)], days: [usage(0, 1)] })
    expect(told).toEqual(['account "acme", line 1 ("req_1"): expected its request, found none'])
  })
})

test.each([
  ["a job's, where its line says so", "video_1", 0],
  ["a request's, where that says so", "req_1", 1],
])("the length of a video is counted once: %s", async (_, reference, requests) => {
  const measured = { ...nothingMeasured, microseconds: 5_000_000 }
  const row = usage(requests, 1)
  const rows = [{ ...row, sums: { ...row.sums, microseconds: 5_000_000n } }]
  const { told } = await differencesIn({
    lines: [charge(1, { reference, measured: { model: "m", upstream: "u", endpoint: "video", measured } })],
    requests: numbers(requests).map((n) => request(n, { endpoint: "video", measured })),
    hours: rows,
    days: rows,
  })
  expect(told).toEqual([])
})

describe("video jobs", () => {
  const jobId = (n: number) => `019a0000-0000-7000-8000-${String(n).padStart(12, "0")}`
  const job = (n: number, changes: Partial<FoundJob> = {}): FoundJob => ({
    id: jobId(n),
    accountId: "a1",
    state: "completed",
    charge: tenCents,
    ...changes,
  })
  const film = (n: number, changes: Partial<FoundLine> = {}) =>
    charge(n, { reference: jobReference(jobId(n)), ...changes })

  test("many more than are looked at together: nothing is lost between, and lookups stay small", async () => {
    const count = 1700
    const { told, asked, reconciled } = await differencesIn({
      lines: numbers(count).map((n) => film(n)),
      jobs: numbers(count).map((n) => job(n)),
      hours: [usage(0, count)],
      days: [usage(0, count)],
    })
    expect(told).toEqual([])
    expect(reconciled).toEqual({ accounts: 1, lines: count, requests: 0, jobs: count, hours: 1, differences: 0 })
    expect(Math.max(...asked)).toBeLessThanOrEqual(500)
    expect(asked.reduce((sum, each) => sum + each, 0)).toBe(2 * count)
  })

  test("a wrong one is told wherever it stands in the stream", async () => {
    for (const wrong of [1, 499, 500, 501, 1000, 1100]) {
      const { told } = await differencesIn({
        lines: numbers(1100).map((n) => film(n)),
        jobs: numbers(1100).map((n) => job(n, n === wrong ? { charge: 0n } : {})),
        hours: [usage(0, 1100)],
        days: [usage(0, 1100)],
      })
      expect(told).toEqual([
        `account "acme", video job "${jobId(wrong)}": expected no ledger line, because it is not charged, ` +
          `found line ${wrong} of -0.1 on account "acme"`,
      ])
    }
  })

  test("one charged twice is told with both lines", async () => {
    const { told } = await differencesIn({
      lines: [film(1), charge(2, { reference: jobReference(jobId(1)) })],
      jobs: [job(1)],
      hours: [usage(0, 2)],
      days: [usage(0, 2)],
    })
    expect(told).toEqual([
      `account "acme", video job "${jobId(1)}": expected one ledger line of -0.1 on account "acme", ` +
        'found line 1 of -0.1 on account "acme" and line 2 of -0.1 on account "acme"',
    ])
  })

  const likeAJob = ["video_festival", `refund:${jobReference(jobId(1))}`, `${jobReference(jobId(1))}:again`]
  test.each(likeAJob)(
    "a line with the reference %s, which only looks like a job's, needs no job",
    async (reference) => {
      const topup = { kind: "topup", amount: tenCents, balanceAfter: tenCents, reference } as const
      expect((await differencesIn({ lines: [charge(1, topup)] })).told).toEqual([])
    },
  )
})

test("names stay on one line, whatever is in them", async () => {
  const { told } = await differencesIn({ hours: [usage(1, 1, { model: "two\nlines", time: 1e15 })] })
  expect(told).toEqual([
    'account "acme", hour 1000000000000000, model "two\\nlines", upstream "u": expected no roll-up, found one of requests 1, charge 0.1',
  ])
})

test("sums beyond what numbers hold exactly are compared exactly", async () => {
  const count = 1801
  const each = 9_999_999_999_999
  const measured = { ...nothingMeasured, microseconds: each }
  const requests = numbers(count).map((n) => request(n, { measured, charge: 0n, price: null }))
  const told = async (change: bigint) => {
    const microseconds = BigInt(count) * BigInt(each) + change
    const row = usage(count, 0, { sums: { ...usage(count, 0).sums, microseconds } })
    return (await differencesIn({ requests, hours: [row], days: [row] })).told
  }
  expect(await told(0n)).toEqual([])
  expect(await told(1n)).toHaveLength(2)
})
