import type { Simulator } from "../../simulator/simulator.ts"
import type { UpstreamConfig } from "../../src/config/document.ts"
import { type Scene, type SceneOptions, scene } from "../support/scene.ts"

export const anthropic: Partial<UpstreamConfig> = { vendor: "anthropic" }
export const modes = [
  ["not streamed", false],
  ["streamed", true],
] as const

/** One upstream that speaks messages alone. */
export function overMessages(simulator: Simulator, options: SceneOptions = {}): Promise<Scene> {
  return scene(simulator, ["a"], { each: { a: anthropic }, ...options })
}

/** The same usage as the vendor tells it, as the caller is told it, and as it is booked. */
export const messagesUsage = {
  input_tokens: 10,
  cache_read_input_tokens: 30,
  cache_creation_input_tokens: 5,
  output_tokens: 8,
}
export const chatUsage = {
  prompt_tokens: 45,
  completion_tokens: 8,
  total_tokens: 53,
  prompt_tokens_details: { cached_tokens: 30, cache_write_tokens: 5 },
  completion_tokens_details: { reasoning_tokens: 0 },
}
export const used = {
  input: 45,
  cachedInput: 30,
  cacheWrite: 5,
  audioInput: 0,
  output: 8,
  reasoning: 0,
  audioOutput: 0,
}
