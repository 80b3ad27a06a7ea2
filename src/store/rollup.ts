import type { RequestRecord } from "../core/request-record.ts"
import { bulkInsert, type SqlValue } from "./bulk.ts"
import { type UsageCounter, usageCounters, type Writer } from "./schema.ts"

/** The two roll-ups: hours for a close look, days so that a look at years reads little. */
export type UsageSpan = "hour" | "day"

export const spanMs: Readonly<Record<UsageSpan, number>> = { hour: 3_600_000, day: 86_400_000 }

export interface UsagePlace {
  /** Hours or days since 1970. */
  readonly time: number
  readonly accountId: string
  readonly model: string
  /** "" where none was asked. */
  readonly upstream: string
}

/** Sums over the requests of one place. `charge` is apart because it alone may grow beyond what numbers hold exactly. */
export interface UsageSums extends UsagePlace {
  readonly counts: Record<Exclude<UsageCounter, "charge">, number>
  charge: bigint
}

/** True where the caller did not get what was asked for. */
export function isFailure({ status, ending }: Pick<RequestRecord, "status" | "ending">): boolean {
  return status >= 400 || ending === "failed"
}

/** What records add to the hours or days they ended in, in the order of their places. */
export function rollUp(span: UsageSpan, records: readonly RequestRecord[]): readonly UsageSums[] {
  const places = new Map<string, UsageSums>()
  for (const record of records) {
    const time = Math.floor(Math.round(record.endedAt) / spanMs[span])
    const upstream = record.upstream ?? ""
    const key = `${time}\0${record.accountId}\0${record.model}\0${upstream}`
    let sums = places.get(key)
    if (sums === undefined) {
      const { accountId, model } = record
      sums = { time, accountId, model, upstream, counts: noCounts(), charge: 0n }
      places.set(key, sums)
    }
    add(sums, record)
  }
  if (places.size === 1) return [...places.values()]
  return [...places].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sums]) => sums)
}

/** A finished video that is charged. */
export interface VideoUsage {
  readonly accountId: string
  readonly model: string
  readonly upstream: string
  readonly finishedAt: number
  readonly microseconds: number | null
  readonly charge: bigint
}

/** What a video adds to the hour or day it was finished in: its length and charge, for its request was counted at submit. */
export function videoSums(span: UsageSpan, video: VideoUsage): UsageSums {
  const { accountId, model, upstream, finishedAt, microseconds, charge } = video
  const time = Math.floor(Math.round(finishedAt) / spanMs[span])
  return { time, accountId, model, upstream, counts: { ...noCounts(), microseconds: microseconds ?? 0 }, charge }
}

function noCounts(): UsageSums["counts"] {
  return {
    requests: 0,
    failures: 0,
    estimated: 0,
    input_tokens: 0,
    cached_input_tokens: 0,
    cache_write_tokens: 0,
    audio_input_tokens: 0,
    output_tokens: 0,
    reasoning_tokens: 0,
    audio_output_tokens: 0,
    images: 0,
    microseconds: 0,
    characters: 0,
    duration_ms: 0,
    first_token_ms: 0,
    first_tokens: 0,
  }
}

function add(sums: UsageSums, record: RequestRecord): void {
  const { counts } = sums
  const { tokens, images, microseconds, characters } = record.measured
  counts.requests += 1
  if (isFailure(record)) counts.failures += 1
  if (record.estimated) counts.estimated += 1
  if (tokens !== null) {
    counts.input_tokens += tokens.input
    counts.cached_input_tokens += tokens.cachedInput
    counts.cache_write_tokens += tokens.cacheWrite
    counts.audio_input_tokens += tokens.audioInput
    counts.output_tokens += tokens.output
    counts.reasoning_tokens += tokens.reasoning
    counts.audio_output_tokens += tokens.audioOutput
  }
  counts.images += images ?? 0
  counts.microseconds += microseconds ?? 0
  counts.characters += characters ?? 0
  counts.duration_ms += Math.round(record.durationMs)
  if (record.firstTokenMs !== null) {
    counts.first_token_ms += Math.round(record.firstTokenMs)
    counts.first_tokens += 1
  }
  sums.charge += record.charge
}

const insertUsage: Readonly<Record<UsageSpan, ReturnType<typeof bulkInsert>>> = {
  hour: insertInto("usage_hours", "hour"),
  day: insertInto("usage_days", "day"),
}

function insertInto(name: string, span: UsageSpan): ReturnType<typeof bulkInsert> {
  const sums = usageCounters.map((counter) => `${counter} = ${name}.${counter} + excluded.${counter}`)
  return bulkInsert({
    name,
    columns: [span, "account_id", "model", "upstream", ...usageCounters],
    end: `on conflict (${span}, account_id, model, upstream) do update set ${sums.join(", ")}`,
  })
}

/** Adds to a roll-up. Everyone does so in the order of the places, so that nobody waits for each other in a ring. */
export function addUsage(trx: Writer, span: UsageSpan, all: readonly UsageSums[]): Promise<void> {
  const values: SqlValue[] = []
  for (const sums of all) {
    values.push(BigInt(sums.time), sums.accountId, sums.model, sums.upstream)
    for (const counter of usageCounters) {
      values.push(counter === "charge" ? sums.charge : exact(sums.counts[counter]))
    }
  }
  return insertUsage[span](trx, values)
}

function exact(count: number): bigint {
  if (!Number.isSafeInteger(count)) throw new RangeError(`a count of ${count} cannot be kept exactly`)
  return BigInt(count)
}
