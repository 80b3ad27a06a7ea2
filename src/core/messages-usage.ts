import { isObject, type JsonObject } from "./json.ts"
import { isTokenCount, tokenCounts } from "./token-count.ts"
import type { TokenUsage, UsageReading } from "./usage.ts"

/** Reads the `usage` object of messages. */
export function readMessagesUsage(usage: unknown): UsageReading {
  if (usage === undefined || usage === null) return null
  if (!isObject(usage)) return "invalid"
  const lifetimes = isObject(usage.cache_creation) ? usage.cache_creation : {}
  const details = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  const counts = tokenCounts(
    { fresh: usage.input_tokens, output: usage.output_tokens },
    {
      cachedInput: usage.cache_read_input_tokens,
      written: usage.cache_creation_input_tokens,
      written5m: lifetimes.ephemeral_5m_input_tokens,
      written1h: lifetimes.ephemeral_1h_input_tokens,
      reasoning: details.thinking_tokens,
    },
  )
  if (counts === "invalid") return "invalid"
  const { fresh, cachedInput, written, written5m, written1h, output, reasoning } = counts
  const cacheWrite = isTokenCount(usage.cache_creation_input_tokens) ? written : written5m + written1h
  // The vendor counts cached tokens beside `input_tokens`, not inside.
  const input = fresh + cachedInput + cacheWrite
  if (!isTokenCount(input)) return "invalid"
  return { input, cachedInput, cacheWrite, audioInput: 0, output, reasoning, audioOutput: 0 }
}

/** The usage of a stream so far: counts are running totals, so what a later event says replaces what an earlier one said. */
export function overlayMessagesUsage(earlier: unknown, later: unknown): Record<string, unknown> {
  const usage = isObject(earlier) ? { ...earlier } : {}
  if (!isObject(later)) return usage
  for (const [name, value] of Object.entries(later)) if (value !== null) usage[name] = value
  return usage
}

/** The `usage` object of messages. */
export function writeMessagesUsage(usage: TokenUsage): JsonObject {
  const { input, cachedInput, cacheWrite, output, reasoning } = usage
  const fresh = input - cachedInput - cacheWrite
  return {
    // Clients add the three kinds of input up.
    input_tokens: fresh >= 0 ? fresh : input,
    output_tokens: output,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cachedInput,
    ...(reasoning > 0 ? { output_tokens_details: { thinking_tokens: reasoning } } : {}),
  }
}
