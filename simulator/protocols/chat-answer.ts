import type { BehaviourOf } from "../behaviour.ts"
import { type ChatAsk, readChatAsk } from "./chat-request.ts"
import type { ToolCall } from "./conversation.ts"
import { shortId } from "./ids.ts"
import { atLeast, sentence, tokens } from "./model-voice.ts"
import type { VendorRequest } from "./protocol.ts"
import { toolCallsOf } from "./tool-use.ts"

const tokensPerMessage = 4

/** What every chunk and every completion repeats. */
export interface CompletionFacts {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly includeUsage: boolean
}

export type Usage = Readonly<Record<string, unknown>> | null

/** What the model says. */
export interface Answer {
  readonly text: string
  readonly reasoning: string
  readonly toolCalls: readonly ToolCall[]
  readonly finishReason: string | null
  readonly usage: Usage
}

/** Facts for answers that do not care whether the request is a good one. */
export function factsOf(request: VendorRequest): CompletionFacts {
  const ask = readChatAsk(request.body)
  return "problem" in ask ? facts({ model: "unknown", includeUsage: false }) : facts(ask)
}

export function facts(
  ask: { readonly model: string; readonly includeUsage: boolean },
  step?: BehaviourOf<"chat">,
): CompletionFacts {
  return {
    id: step?.id ?? `chatcmpl-${shortId()}`,
    created: Math.floor(Date.now() / 1000),
    model: step?.model ?? ask.model,
    includeUsage: ask.includeUsage,
  }
}

/** The answer the step asks for; what it leaves open is what a lively model would say. */
export function decide(ask: ChatAsk, step: BehaviourOf<"chat">): Answer {
  const toolCalls = toolCallsOf(ask, step, "call_")
  const text = step.text ?? (toolCalls.length > 0 ? "" : atLeast(step.chunks ?? 0, sentence(ask)))
  const reasoning = step.reasoning ?? ""
  const finishReason =
    step.finishReason === undefined ? (toolCalls.length > 0 ? "tool_calls" : "stop") : step.finishReason
  const spoken = { text, reasoning, toolCalls, finishReason }
  const given = step.usage
  const usage = given === null || typeof given === "object" ? given : countedUsage(ask, spoken, step.cachedTokens ?? 0)
  return { ...spoken, usage }
}

function countedUsage(ask: ChatAsk, spoken: Omit<Answer, "usage">, cachedTokens: number): Usage {
  const counted = tokens(ask.promptLength) + tokensPerMessage * ask.messageCount
  const promptTokens = Math.max(counted, cachedTokens)
  const reasoningTokens = tokens(spoken.reasoning.length)
  const toolLength = spoken.toolCalls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0)
  const completionTokens = tokens(spoken.text.length) + reasoningTokens + tokens(toolLength)
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  }
}

/** The body of an answer that is not streamed; `usage: undefined` leaves the field out. */
export function completion(
  { id, created, model }: CompletionFacts,
  answer: Pick<Answer, "text"> & Partial<Omit<Answer, "usage">> & { readonly usage: Usage | undefined },
): object {
  const { text, reasoning, toolCalls = [], finishReason = "stop", usage } = answer
  const message = {
    role: "assistant",
    content: text === "" && toolCalls.length > 0 ? null : text,
    ...(reasoning ? { reasoning_content: reasoning } : {}),
    ...(toolCalls.length > 0 ? { tool_calls: toolCalls.map(toolCallBody) } : {}),
    refusal: null,
  }
  const choices = [{ index: 0, message, logprobs: null, finish_reason: finishReason }]
  return { id, object: "chat.completion", created, model, choices, usage, system_fingerprint: "fp_simulated" }
}

function toolCallBody({ id, name, arguments: given }: ToolCall): object {
  return { id, type: "function", function: { name, arguments: given } }
}
