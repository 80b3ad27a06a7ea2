import { isObject } from "./json.ts"
import { type Measured, microsecondsOf, mostImages, nothingRead, type Reading, tokenReading } from "./measured.ts"
import { readResponsesUsage } from "./responses-usage.ts"
import { isTokenCount } from "./token-count.ts"
import type { UsageReading } from "./usage.ts"

/** Names of sizes and qualities are words, not texts. */
const longestTrait = 64

/** Reads the `usage` object of images, speech and transcripts: tokens, seconds of sound, or both. */
export function readMediaUsage(usage: unknown): Reading {
  const isDuration = isObject(usage) && usage.type === "duration"
  const seconds = isObject(usage) ? (usage.seconds ?? undefined) : undefined
  const tokens = isDuration ? nothingRead : tokenReading(readTokens(usage))
  return isDuration || seconds !== undefined ? together(tokens, lengthOf(seconds)) : tokens
}

/** A length of sound beside a transcript, which some vendors write as text. */
export function readDuration(duration: unknown): Reading {
  const isPlainDecimal = typeof duration === "string" && /^\d{1,9}(\.\d{1,20})?$/.test(duration)
  return lengthOf(isPlainDecimal ? Number(duration) : duration)
}

function lengthOf(seconds: unknown): Reading {
  const microseconds = microsecondsOf(seconds)
  return microseconds === null ? { measured: {}, invalid: true } : { measured: { microseconds }, invalid: false }
}

/** Pictures made: entries of the answer, less those that the vendor does not count because they are errors. */
export function countImages(entries: number, usage: unknown): Reading {
  const counted = isObject(usage) ? (usage.generated_images ?? undefined) : undefined
  const isCount = isTokenCount(counted) && counted <= entries
  const images = isCount ? counted : entries
  const invalid = images > mostImages || (counted !== undefined && !isCount)
  return images > mostImages ? { measured: {}, invalid } : { measured: { images }, invalid }
}

/** Two readings of one answer as one; what the second measured counts where both did. */
export function together(one: Reading, other: Reading): Reading {
  return { measured: { ...one.measured, ...other.measured }, invalid: one.invalid || other.invalid }
}

/** Size and quality of pictures, where an answer or a request names them. */
export function traits(size: unknown, quality: unknown): Pick<Partial<Measured>, "size" | "quality"> {
  return { ...(isTrait(size) ? { size } : {}), ...(isTrait(quality) ? { quality } : {}) }
}

function isTrait(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= longestTrait
}

/** One vendor's pictures come with output tokens and their total only; a usage without any tokens says nothing of them. */
function readTokens(usage: unknown): UsageReading {
  if (!isObject(usage)) return readResponsesUsage(usage)
  const { input_tokens: input, output_tokens: output, total_tokens: total } = usage
  if (input === undefined && output === undefined && total === undefined) return null
  const isPartial = input === undefined && isTokenCount(output) && isTokenCount(total)
  return readResponsesUsage(isPartial ? { ...usage, input_tokens: total - output } : usage)
}
