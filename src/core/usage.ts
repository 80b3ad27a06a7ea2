import { isObject } from "./json.ts"
import { tokenCounts } from "./token-count.ts"

/** Tokens of one answer. `input` counts everything read: cached, cache-written and audio tokens included; `output` likewise. */
export interface TokenUsage {
  readonly input: number
  readonly cachedInput: number
  readonly cacheWrite: number
  readonly audioInput: number
  readonly output: number
  readonly reasoning: number
  readonly audioOutput: number
}

/** What an upstream says about tokens: a usage, nothing, or something that cannot be charged by. */
export type UsageReading = TokenUsage | "invalid" | null

/** Reads the `usage` object of chat completions. */
export function readChatUsage(usage: unknown): UsageReading {
  if (usage === undefined || usage === null) return null
  if (!isObject(usage)) return "invalid"
  const prompt = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  const completion = isObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {}
  return consistent(
    withReasoning(
      usage.total_tokens,
      tokenCounts(
        { input: usage.prompt_tokens, output: usage.completion_tokens },
        {
          cachedInput: prompt.cached_tokens ?? usage.prompt_cache_hit_tokens,
          cacheWrite: prompt.cache_write_tokens ?? prompt.cache_creation_tokens,
          audioInput: prompt.audio_tokens,
          reasoning: completion.reasoning_tokens,
          audioOutput: completion.audio_tokens,
        },
      ),
    ),
  )
}

/** Some vendors count reasoning beside the output instead of inside, which only their total gives away. */
function withReasoning(total: unknown, usage: TokenUsage | "invalid"): TokenUsage | "invalid" {
  if (usage === "invalid" || usage.reasoning === 0) return usage
  const { input, output, reasoning } = usage
  return total === input + output + reasoning ? { ...usage, output: output + reasoning } : usage
}

/** Embeddings and rerank report only what they read, some as `total_tokens` alone. */
export function readInputUsage(usage: unknown): UsageReading {
  if (!isObject(usage)) return readChatUsage(usage)
  return readChatUsage({
    ...usage,
    prompt_tokens: usage.prompt_tokens ?? usage.total_tokens,
    completion_tokens: usage.completion_tokens ?? 0,
  })
}

/** Parts that are more than their whole would make the rest a negative number of tokens. */
export function consistent(usage: UsageReading): UsageReading {
  if (usage === null || usage === "invalid") return usage
  return usage.cachedInput + usage.cacheWrite > usage.input ? "invalid" : usage
}
