import type { RequestRecord } from "../core/request-record.ts"
import { dollarsOf } from "../lib/money.ts"
import type { Books, FoundLine, StoredUsage } from "../store/reconcile-reads.ts"
import { rollUp, spanMs, type UsagePlace, type UsageSpan } from "../store/rollup.ts"
import { type UsageCounter, usageCounters } from "../store/schema.ts"
import { accountPlace, type Difference, isRequestReference, type Report } from "./differences.ts"

/** What the roll-up by hours should say, by lines and requests. */
export interface ExpectedUsage {
  /** Charges count by their lines, which are never deleted. */
  addLine(line: FoundLine): void
  addRequests(requests: readonly RequestRecord[]): void
  readonly sums: UsageByPlace
}

/** The sums of each place, in the order of the counters; a kilobyte for each place, its name included. */
type UsageByPlace = Map<string, BigInt64Array>

const chargeAt = usageCounters.indexOf("charge")
const microsecondsAt = usageCounters.indexOf("microseconds")
const hoursPerDay = 24

export function expectedUsage(): ExpectedUsage {
  const sums: UsageByPlace = new Map()
  return {
    sums,
    addLine({ kind, reference, measured, amount, accountId, createdAt }) {
      if (kind !== "charge" || measured === null) return
      const { model, upstream, endpoint } = measured
      const time = Math.floor(createdAt / spanMs.hour)
      const sumsHere = sumsAt(sums, { time, accountId, model, upstream: upstream ?? "" })
      add(sumsHere, chargeAt, -amount)
      // A video's request was counted when it was submitted, its length when the job was finished.
      const isJob = endpoint === "video" && !isRequestReference(reference)
      if (isJob) add(sumsHere, microsecondsAt, BigInt(measured.measured.microseconds ?? 0))
    },
    addRequests(requests) {
      for (const { counts, ...place } of rollUp("hour", requests)) {
        const sumsHere = sumsAt(sums, place)
        for (const [at, counter] of usageCounters.entries()) {
          if (counter !== "charge") add(sumsHere, at, BigInt(counts[counter]))
        }
      }
    },
  }
}

function sumsAt(all: UsageByPlace, place: UsagePlace): BigInt64Array {
  const key = keyOf(place)
  let sums = all.get(key)
  if (sums === undefined) {
    sums = new BigInt64Array(usageCounters.length)
    all.set(key, sums)
  }
  return sums
}

function add(sums: BigInt64Array, at: number, amount: bigint): void {
  sums[at] = (sums[at] ?? 0n) + amount
}

function keyOf({ time, accountId, model, upstream }: UsagePlace): string {
  return `${time}\0${accountId}\0${model}\0${upstream}`
}

function placeIn(key: string): UsagePlace {
  const [time, accountId = "", model = "", upstream = ""] = key.split("\0")
  return { time: Number(time), accountId, model, upstream }
}

/** Checks both roll-ups against what was expected, which is used up by it; returns how many hours there are. */
export async function reconcileUsage(books: Books, { sums: hours }: ExpectedUsage, report: Report): Promise<number> {
  const days = daysOf(hours)
  const checked = await reconcileSpan(books, "hour", hours, report)
  await reconcileSpan(books, "day", days, report)
  return checked
}

function daysOf(hours: UsageByPlace): UsageByPlace {
  const days: UsageByPlace = new Map()
  for (const [key, sums] of hours) {
    const { time, ...place } = placeIn(key)
    const day = sumsAt(days, { ...place, time: Math.floor(time / hoursPerDay) })
    for (const [at, amount] of sums.entries()) add(day, at, amount)
  }
  return days
}

async function reconcileSpan(books: Books, span: UsageSpan, all: UsageByPlace, report: Report): Promise<number> {
  // Once requests of a time may have been deleted, its charges are all that can still be added up.
  const isWhole = (time: number): boolean => time * spanMs[span] >= books.requestsKeptSince
  const times = new Set<number>()
  for await (const row of books.usage(span)) {
    const key = keyOf(row)
    report(() => placeOf(books, span, row), wrongSums(row, all.get(key), isWhole(row.time)))
    all.delete(key)
    times.add(row.time)
  }
  for (const [key, sums] of all) {
    const place = placeIn(key)
    const expected = `a roll-up of ${described(sumsOf(sums), isWhole(place.time) ? ["requests", "charge"] : ["charge"])}`
    report(() => placeOf(books, span, place), { expected, found: "none" })
  }
  return times.size
}

type SumOf = (counter: UsageCounter) => bigint

function wrongSums(row: StoredUsage, wanted: BigInt64Array | undefined, isWhole: boolean): Difference | null {
  const found: SumOf = (counter) => row.sums[counter]
  if (wanted === undefined && isWhole) {
    return { expected: "no roll-up", found: `one of ${described(found, ["requests", "charge"])}` }
  }
  const expected = sumsOf(wanted)
  const comparable: readonly UsageCounter[] = isWhole ? usageCounters : ["charge"]
  const wrong = comparable.filter((counter) => expected(counter) !== found(counter))
  return wrong.length === 0 ? null : { expected: described(expected, wrong), found: described(found, wrong) }
}

function sumsOf(sums: BigInt64Array | undefined): SumOf {
  return (counter) => sums?.[usageCounters.indexOf(counter)] ?? 0n
}

function described(sumOf: SumOf, counters: readonly UsageCounter[]): string {
  const texts = counters.map((counter) => {
    const sum = sumOf(counter)
    return `${counter} ${counter === "charge" ? dollarsOf(sum) : sum}`
  })
  return texts.join(", ")
}

function placeOf(books: Books, span: UsageSpan, { time, accountId, model, upstream }: UsagePlace): string {
  const names = `model ${JSON.stringify(model)}, upstream ${JSON.stringify(upstream)}`
  return `${accountPlace(books, accountId)}, ${span} ${startOf(span, time)}, ${names}`
}

/** `2026-09-21` or `2026-09-21T14:00Z`; the number itself where it is none of a calendar. */
function startOf(span: UsageSpan, time: number): string {
  const start = new Date(time * spanMs[span])
  if (Number.isNaN(start.getTime())) return String(time)
  return span === "day" ? start.toISOString().slice(0, 10) : `${start.toISOString().slice(0, 16)}Z`
}
