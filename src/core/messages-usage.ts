import { isObject } from "./json.ts"
import type { TokenUsage } from "./usage.ts"

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0
}

function count(value: unknown): number {
  return isCount(value) ? value : 0
}

/** Reads the `usage` object of messages; null when it is not one, or holds no number to charge by. */
export function readMessagesUsage(usage: unknown): TokenUsage | null {
  if (!isObject(usage)) return null
  if (!isCount(usage.input_tokens) && !isCount(usage.output_tokens)) return null
  const cachedInput = count(usage.cache_read_input_tokens)
  const cacheWrite = isCount(usage.cache_creation_input_tokens)
    ? usage.cache_creation_input_tokens
    : writtenByLifetime(usage.cache_creation)
  const details = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  return {
    // The vendor counts cached tokens beside `input_tokens`, not inside.
    input: count(usage.input_tokens) + cachedInput + cacheWrite,
    cachedInput,
    cacheWrite,
    output: count(usage.output_tokens),
    reasoning: count(details.thinking_tokens),
  }
}

function writtenByLifetime(written: unknown): number {
  if (!isObject(written)) return 0
  return count(written.ephemeral_5m_input_tokens) + count(written.ephemeral_1h_input_tokens)
}

/** The usage of a stream so far: counts are running totals, so what a later event says replaces what an earlier one said. */
export function overlayMessagesUsage(earlier: unknown, later: unknown): Record<string, unknown> {
  const usage = isObject(earlier) ? { ...earlier } : {}
  if (!isObject(later)) return usage
  for (const [name, value] of Object.entries(later)) if (isCount(value) || isObject(value)) usage[name] = value
  return usage
}
