import { isObject, type JsonObject } from "./json.ts"
import { isTokenCount, tokenCount } from "./token-count.ts"
import type { TokenUsage } from "./usage.ts"

/** Reads the `usage` object of responses; null when it is not one, or holds no number to charge by. */
export function readResponsesUsage(usage: unknown): TokenUsage | null {
  if (!isObject(usage)) return null
  if (!isTokenCount(usage.input_tokens) && !isTokenCount(usage.output_tokens)) return null
  const input = isObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  const output = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  return {
    input: tokenCount(usage.input_tokens),
    cachedInput: tokenCount(input.cached_tokens),
    cacheWrite: tokenCount(input.cache_write_tokens),
    output: tokenCount(usage.output_tokens),
    reasoning: tokenCount(output.reasoning_tokens),
  }
}

/** The `usage` object of responses. Clients read the details without asking whether they are there. */
export function writeResponsesUsage(usage: TokenUsage): JsonObject {
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cachedInput, cache_write_tokens: usage.cacheWrite },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: usage.input + usage.output,
  }
}
