import type { Endpoint } from "../core/endpoints.ts"
import type { Measured } from "../core/measured.ts"
import type { AppliedPrice, Tariff } from "../core/price.ts"
import type { AttemptRecord } from "../core/story.ts"
import type { TokenUsage } from "../core/usage.ts"
import type { SecondsSource } from "../core/video-job.ts"

/*
 * The JSON in the columns `measured`, `price`, `tariff` and `attempts`. Ledger lines are kept for ever, so names once written stay
 * readable for ever: fields may be added, never renamed.
 */

/** What a charge was made by, and for what: with its price, a ledger line explains itself without any other row. */
export interface MeasuredFor {
  readonly model: string
  readonly upstream: string | null
  readonly endpoint: Endpoint
  readonly measured: Measured
  /** How a video's length was known; videos only. */
  readonly secondsSource?: SecondsSource | undefined
}

/** As written; what is absent was not measured. Where there are tokens, a part of them that is absent is zero. */
interface MeasuredJson {
  readonly model: string
  readonly upstream?: string | undefined
  readonly endpoint: Endpoint
  readonly input_tokens?: number | undefined
  readonly cached_input_tokens?: number | undefined
  readonly cache_write_tokens?: number | undefined
  readonly audio_input_tokens?: number | undefined
  readonly output_tokens?: number | undefined
  readonly reasoning_tokens?: number | undefined
  readonly audio_output_tokens?: number | undefined
  readonly images?: number | undefined
  /** An exact decimal, such as "1.5". */
  readonly seconds?: string | undefined
  readonly seconds_source?: SecondsSource | undefined
  readonly characters?: number | undefined
  readonly search_units?: number | undefined
  readonly size?: string | undefined
  readonly quality?: string | undefined
}

export function writeMeasured({ model, upstream, endpoint, measured, secondsSource }: MeasuredFor): string {
  const { tokens, images, microseconds, characters, searchUnits, size, quality } = measured
  const json: MeasuredJson = {
    model,
    upstream: upstream ?? undefined,
    endpoint,
    input_tokens: tokens?.input,
    cached_input_tokens: tokens?.cachedInput || undefined,
    cache_write_tokens: tokens?.cacheWrite || undefined,
    audio_input_tokens: tokens?.audioInput || undefined,
    output_tokens: tokens?.output,
    reasoning_tokens: tokens?.reasoning || undefined,
    audio_output_tokens: tokens?.audioOutput || undefined,
    images: images ?? undefined,
    seconds: microseconds === null ? undefined : secondsOf(microseconds),
    seconds_source: secondsSource,
    characters: characters ?? undefined,
    search_units: searchUnits ?? undefined,
    size: size ?? undefined,
    quality: quality ?? undefined,
  }
  return JSON.stringify(json)
}

export function readMeasured(text: string): MeasuredFor {
  const json: MeasuredJson = JSON.parse(text)
  return {
    model: json.model,
    upstream: json.upstream ?? null,
    endpoint: json.endpoint,
    measured: {
      tokens: readTokens(json),
      images: json.images ?? null,
      microseconds: json.seconds === undefined ? null : microsecondsIn(json.seconds),
      characters: json.characters ?? null,
      searchUnits: json.search_units ?? null,
      size: json.size ?? null,
      quality: json.quality ?? null,
    },
    secondsSource: json.seconds_source,
  }
}

function readTokens(json: MeasuredJson): TokenUsage | null {
  if (json.input_tokens === undefined) return null
  return {
    input: json.input_tokens,
    cachedInput: json.cached_input_tokens ?? 0,
    cacheWrite: json.cache_write_tokens ?? 0,
    audioInput: json.audio_input_tokens ?? 0,
    output: json.output_tokens ?? 0,
    reasoning: json.reasoning_tokens ?? 0,
    audioOutput: json.audio_output_tokens ?? 0,
  }
}

const microsecondDigits = 6

function secondsOf(microseconds: number): string {
  const digits = String(microseconds).padStart(microsecondDigits + 1, "0")
  const fraction = digits.slice(-microsecondDigits).replace(/0+$/, "")
  const whole = digits.slice(0, -microsecondDigits)
  return fraction === "" ? whole : `${whole}.${fraction}`
}

function microsecondsIn(seconds: string): number {
  const [whole = "", fraction = ""] = seconds.split(".")
  return Number(whole + fraction.padEnd(microsecondDigits, "0"))
}

export function writePrice({ version, multiplier, units }: AppliedPrice): string {
  return JSON.stringify({ version, multiplier, units })
}

export function readPrice(text: string): AppliedPrice {
  return JSON.parse(text)
}

export function writeTariff({ price, multiplier, version }: Tariff): string {
  return JSON.stringify({ price, multiplier, version })
}

export function readTariff(text: string): Tariff {
  return JSON.parse(text)
}

interface AttemptJson {
  readonly upstream: string
  readonly upstream_model: string
  readonly why: string
  readonly started_at: number
  readonly ended_at: number | null
  readonly outcome: string
  readonly status: number | null
  readonly detail: string | null
}

export function writeAttempts(attempts: readonly AttemptRecord[]): string {
  return JSON.stringify(attempts.map(attemptJson))
}

/** Microseconds are as exact as clocks are; more digits would only fill the disk. */
function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000
}

function attemptJson(attempt: AttemptRecord): AttemptJson {
  return {
    upstream: attempt.upstream,
    upstream_model: attempt.upstreamModel,
    why: attempt.why,
    started_at: rounded(attempt.startedAt),
    ended_at: attempt.endedAt === null ? null : rounded(attempt.endedAt),
    outcome: attempt.outcome,
    status: attempt.status,
    detail: attempt.detail,
  }
}

export function readAttempts(text: string): readonly AttemptRecord[] {
  const attempts: readonly AttemptJson[] = JSON.parse(text)
  return attempts.map((attempt) => ({
    upstream: attempt.upstream,
    upstreamModel: attempt.upstream_model,
    why: attempt.why,
    startedAt: attempt.started_at,
    endedAt: attempt.ended_at,
    outcome: attempt.outcome,
    status: attempt.status,
    detail: attempt.detail,
  }))
}
