import { isObject } from "./json.ts"
import { isTokenCount, tokenCount } from "./token-count.ts"

/** Tokens of one answer. `input` counts everything read, cached and cache-written tokens included. */
export interface TokenUsage {
  readonly input: number
  readonly cachedInput: number
  readonly cacheWrite: number
  readonly output: number
  readonly reasoning: number
}

/** Reads the `usage` object of chat completions; null when it is not one, or holds no number to charge by. */
export function readChatUsage(usage: unknown): TokenUsage | null {
  if (!isObject(usage)) return null
  if (!isTokenCount(usage.prompt_tokens) && !isTokenCount(usage.completion_tokens)) return null
  const prompt = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  const completion = isObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {}
  return {
    input: tokenCount(usage.prompt_tokens),
    cachedInput: tokenCount(prompt.cached_tokens ?? usage.prompt_cache_hit_tokens),
    cacheWrite: tokenCount(prompt.cache_write_tokens ?? prompt.cache_creation_tokens),
    output: tokenCount(usage.completion_tokens),
    reasoning: tokenCount(completion.reasoning_tokens),
  }
}
