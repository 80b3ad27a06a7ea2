import { isObject } from "./json.ts"
import { mostSearchUnits, type Reading } from "./measured.ts"
import { tokenCounts } from "./token-count.ts"
import { readInputUsage, type UsageReading } from "./usage.ts"

/** Reads what a reranking took from the answer's `usage` (tokens) and `meta` (a vendor's search units, or tokens). */
export function readRerankUsage(usage: unknown, meta: unknown): Reading {
  const units = readSearchUnits(meta)
  const told = readInputUsage(usage)
  const tokens = told === null ? readMetaTokens(meta) : told
  return {
    measured: {
      ...(typeof units === "number" ? { searchUnits: units } : {}),
      ...(tokens === null || tokens === "invalid" ? {} : { tokens }),
    },
    invalid: units === "invalid" || tokens === "invalid",
  }
}

function readSearchUnits(meta: unknown): number | "invalid" | null {
  const units = objectIn(meta, "billed_units").search_units
  if (units === undefined || units === null) return null
  const isCount = typeof units === "number" && Number.isInteger(units) && units >= 0 && units <= mostSearchUnits
  return isCount ? units : "invalid"
}

/** Billed tokens before those that were merely read. */
function readMetaTokens(meta: unknown): UsageReading {
  const billed = objectIn(meta, "billed_units")
  const { input_tokens: input, output_tokens } = hasTokens(billed) ? billed : objectIn(meta, "tokens")
  if (input === undefined || input === null) return null
  const counts = tokenCounts({ input }, { output: output_tokens })
  if (counts === "invalid") return counts
  return { ...counts, cachedInput: 0, cacheWrite: 0, audioInput: 0, reasoning: 0, audioOutput: 0 }
}

function hasTokens({ input_tokens: input }: Record<string, unknown>): boolean {
  return input !== undefined && input !== null
}

function objectIn(value: unknown, name: string): Record<string, unknown> {
  const found = isObject(value) ? value[name] : undefined
  return isObject(found) ? found : {}
}
