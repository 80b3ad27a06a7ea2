import { isObject } from "./json.ts"

/** Tokens of one answer. `input` counts everything read, cached and cache-written tokens included. */
export interface TokenUsage {
  readonly input: number
  readonly cachedInput: number
  readonly cacheWrite: number
  readonly output: number
  readonly reasoning: number
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0
}

function count(value: unknown): number {
  return isCount(value) ? value : 0
}

/** Reads the `usage` object of chat completions; null when it is not one, or holds no number to charge by. */
export function readChatUsage(usage: unknown): TokenUsage | null {
  if (!isObject(usage)) return null
  if (!isCount(usage.prompt_tokens) && !isCount(usage.completion_tokens)) return null
  const prompt = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  const completion = isObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {}
  return {
    input: count(usage.prompt_tokens),
    cachedInput: count(prompt.cached_tokens ?? usage.prompt_cache_hit_tokens),
    cacheWrite: count(prompt.cache_write_tokens ?? prompt.cache_creation_tokens),
    output: count(usage.completion_tokens),
    reasoning: count(completion.reasoning_tokens),
  }
}
