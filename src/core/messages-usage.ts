import { isObject } from "./json.ts"
import { isTokenCount, tokenCount } from "./token-count.ts"
import type { TokenUsage } from "./usage.ts"

/** Reads the `usage` object of messages; null when it is not one, or holds no number to charge by. */
export function readMessagesUsage(usage: unknown): TokenUsage | null {
  if (!isObject(usage)) return null
  if (!isTokenCount(usage.input_tokens) && !isTokenCount(usage.output_tokens)) return null
  const cachedInput = tokenCount(usage.cache_read_input_tokens)
  const cacheWrite = isTokenCount(usage.cache_creation_input_tokens)
    ? usage.cache_creation_input_tokens
    : writtenByLifetime(usage.cache_creation)
  const details = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  return {
    // The vendor counts cached tokens beside `input_tokens`, not inside.
    input: tokenCount(usage.input_tokens) + cachedInput + cacheWrite,
    cachedInput,
    cacheWrite,
    output: tokenCount(usage.output_tokens),
    reasoning: tokenCount(details.thinking_tokens),
  }
}

function writtenByLifetime(written: unknown): number {
  if (!isObject(written)) return 0
  return tokenCount(written.ephemeral_5m_input_tokens) + tokenCount(written.ephemeral_1h_input_tokens)
}

/** The usage of a stream so far: counts are running totals, so what a later event says replaces what an earlier one said. */
export function overlayMessagesUsage(earlier: unknown, later: unknown): Record<string, unknown> {
  const usage = isObject(earlier) ? { ...earlier } : {}
  if (!isObject(later)) return usage
  for (const [name, value] of Object.entries(later)) if (isTokenCount(value) || isObject(value)) usage[name] = value
  return usage
}
