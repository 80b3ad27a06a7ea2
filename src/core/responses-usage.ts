import { isObject, type JsonObject } from "./json.ts"
import type { TokenUsage } from "./usage.ts"

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0
}

function count(value: unknown): number {
  return isCount(value) ? value : 0
}

/** Reads the `usage` object of responses; null when it is not one, or holds no number to charge by. */
export function readResponsesUsage(usage: unknown): TokenUsage | null {
  if (!isObject(usage)) return null
  if (!isCount(usage.input_tokens) && !isCount(usage.output_tokens)) return null
  const input = isObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  const output = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  return {
    input: count(usage.input_tokens),
    cachedInput: count(input.cached_tokens),
    cacheWrite: count(input.cache_write_tokens),
    output: count(usage.output_tokens),
    reasoning: count(output.reasoning_tokens),
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
