import type { TokenUsage, UsageReading } from "./usage.ts"

/** What one answer is charged by; null where nobody said or counted. */
export interface Measured {
  readonly tokens: TokenUsage | null
  /** Pictures made. */
  readonly images: number | null
  /** Length of audio or video in millionths of a second, so that sums stay whole. */
  readonly microseconds: number | null
  /** Unicode code points of the text to speak. */
  readonly characters: number | null
  /** A rerank vendor's own unit of work. */
  readonly searchUnits: number | null
  /** Of the pictures, for prices by size and quality. */
  readonly size: string | null
  readonly quality: string | null
}

export const nothingMeasured: Measured = {
  tokens: null,
  images: null,
  microseconds: null,
  characters: null,
  searchUnits: null,
  size: null,
  quality: null,
}

/** What was found in an answer; `invalid` where it said something that cannot be charged by. */
export interface Reading {
  readonly measured: Partial<Measured>
  readonly invalid: boolean
}

export const nothingRead: Reading = { measured: {}, invalid: false }
const invalidReading: Reading = { measured: {}, invalid: true }

/** A reading of tokens alone. */
export function tokenReading(usage: UsageReading): Reading {
  if (usage === null) return nothingRead
  return usage === "invalid" ? invalidReading : { measured: { tokens: usage }, invalid: false }
}

/** Beyond these a number is a mistake, and charging by it would be another. */
export const mostImages = 10_000
export const mostSeconds = 10_000_000
export const mostSearchUnits = 1_000_000

/** A length in seconds as vendors report it, rounded half up to millionths; null for what is no length. */
export function microsecondsOf(seconds: unknown): number | null {
  if (typeof seconds !== "number" || !(seconds >= 0) || seconds > mostSeconds) return null
  return Math.round(seconds * 1_000_000)
}
