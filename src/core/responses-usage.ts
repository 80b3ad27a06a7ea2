import { isObject, type JsonObject } from "./json.ts"
import { tokenCounts } from "./token-count.ts"
import { consistent, type TokenUsage, type UsageReading } from "./usage.ts"

/** Reads the `usage` object of responses, which images, speech and transcripts have too. */
export function readResponsesUsage(usage: unknown): UsageReading {
  if (usage === undefined || usage === null) return null
  if (!isObject(usage)) return "invalid"
  const input = detailsOf(usage, "input")
  const output = detailsOf(usage, "output")
  return consistent(
    tokenCounts(
      { input: usage.input_tokens, output: usage.output_tokens },
      {
        cachedInput: input.cached_tokens,
        cacheWrite: input.cache_write_tokens,
        audioInput: input.audio_tokens,
        reasoning: output.reasoning_tokens,
        audioOutput: output.audio_tokens,
      },
    ),
  )
}

/** Responses write `input_tokens_details`, transcripts `input_token_details`. */
function detailsOf(usage: Readonly<Record<string, unknown>>, side: "input" | "output"): Record<string, unknown> {
  const details = usage[`${side}_tokens_details`] ?? usage[`${side}_token_details`]
  return isObject(details) ? details : {}
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
