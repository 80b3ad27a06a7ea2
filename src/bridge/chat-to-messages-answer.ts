import { GatewayError } from "../core/errors.ts"
import { isObject, type JsonObject, type JsonValue } from "../core/json.ts"
import { readMessagesUsage } from "../core/messages-usage.ts"
import type { TokenUsage } from "../core/usage.ts"
import { callIdFor, completionIdFor } from "./chat-to-messages-ids.ts"
import { speaksOfFunctions } from "./chat-to-messages-tools.ts"

export type FinishReason = "stop" | "length" | "tool_calls" | "function_call" | "content_filter"

const finishReasons: ReadonlyMap<unknown, FinishReason> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["pause_turn", "stop"],
  ["tool_use", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["refusal", "content_filter"],
])

/** Whether tools were called decides more than the vendor's word: some upstreams end a turn with calls as any other. */
export function finishReason(stopReason: unknown, called: boolean, legacy: boolean): FinishReason {
  const reason = finishReasons.get(stopReason) ?? "stop"
  if (reason !== "stop" || !called) return reason
  return legacy ? "function_call" : "tool_calls"
}

export function chatUsage(usage: TokenUsage): JsonObject {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cachedInput, cache_write_tokens: usage.cacheWrite },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  }
}

/** What names a completion, in the whole answer and in each chunk alike. */
export function completionIdentity(message: Readonly<Record<string, unknown>>, asked: JsonObject): JsonObject {
  const model = typeof message.model === "string" && message.model !== "" ? message.model : asked.model
  return { id: completionIdFor(message.id), created: Math.floor(Date.now() / 1000), model: model ?? "" }
}

/** The chat completion for a whole message. */
export function chatAnswer(answered: JsonObject, asked: JsonObject): JsonObject {
  if (!Array.isArray(answered.content)) {
    throw new GatewayError("upstream_invalid_response", "the upstream's answer could not be understood", {
      internal: "the messages answer has no content array",
    })
  }
  const blocks = (answered.content as readonly JsonValue[]).filter((block) => isObject(block))
  const calls = blocks.filter(({ type, name }) => type === "tool_use" && typeof name === "string" && name !== "")
  const legacy = speaksOfFunctions(asked)
  const text = joined(blocks, "text", "text")
  const reasoning = joined(blocks, "thinking", "thinking")
  const usage = readMessagesUsage(answered.usage)
  const message = {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    refusal: null,
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...callFields(calls, legacy),
  }
  const finish = finishReason(answered.stop_reason, calls.length > 0, legacy)
  return {
    ...completionIdentity(answered, asked),
    object: "chat.completion",
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
    ...(usage === null || usage === "invalid" ? {} : { usage: chatUsage(usage) }),
  }
}

function joined(blocks: readonly JsonObject[], type: string, field: string): string {
  return blocks.map((block) => (block.type === type && typeof block[field] === "string" ? block[field] : "")).join("")
}

function callFields(calls: readonly JsonObject[], legacy: boolean): JsonObject {
  const [first] = calls
  if (first === undefined) return {}
  if (legacy) return { function_call: calledFunction(first) }
  return {
    tool_calls: calls.map((call) => ({ id: callIdFor(call.id), type: "function", function: calledFunction(call) })),
  }
}

function calledFunction({ name, input }: JsonObject): JsonObject {
  return { name, arguments: argumentsText(input) }
}

/** Callers parse the arguments, so a call without any still has an empty object. */
export function argumentsText(input: unknown): string {
  if (typeof input === "string" && input.trim() !== "") return input
  return JSON.stringify(isObject(input) ? input : {})
}
