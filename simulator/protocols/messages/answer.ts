import type { BehaviourOf } from "../../behaviour.ts"
import type { ToolCall } from "../conversation.ts"
import { shortId } from "../ids.ts"
import { readJson } from "../json-body.ts"
import { atLeast, sentence, tokens } from "../model-voice.ts"
import { toolCallsOf } from "../tool-use.ts"
import type { MessagesAsk } from "./request.ts"

const tokensPerMessage = 4
const usualSignature = "EqQBCgIYAhIkc2ltdWxhdGVkLXNpZ25hdHVyZQ=="

type Step = BehaviourOf<"messages">
type Fields = Readonly<Record<string, unknown>>

/** One block of the answer's content. */
export type ContentBlock =
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "tool_use"; readonly call: ToolCall }

export interface Answer {
  readonly id: string
  readonly model: string
  readonly blocks: readonly ContentBlock[]
  readonly stopReason: string | null
  readonly stopSequence: string | null
  /** Undefined leaves it out. */
  readonly usage: Fields | undefined
  /** What the end of a stream tells of it. */
  readonly totals: Fields | undefined
}

/** The answer the step asks for; what it leaves open is what a lively model would say. */
export function decide(ask: MessagesAsk, step: Step): Answer {
  const blocks = ask.maxTokens === 0 ? [] : blocksOf(ask, step)
  const totals = step.usage === "none" ? undefined : (step.usage ?? counted(ask, step, blocks))
  return {
    id: step.id ?? `msg_${shortId()}`,
    model: step.model ?? ask.model,
    blocks,
    stopReason: step.stopReason === undefined ? usualStop(ask, blocks, step) : step.stopReason,
    stopSequence: step.stopSequence ?? null,
    usage: step.usage === undefined ? { ...totals, ...breakdown(step) } : totals,
    totals,
  }
}

function blocksOf(ask: MessagesAsk, step: Step): ContentBlock[] {
  const calls = toolCallsOf(ask, step, "toolu_")
  const text = step.text ?? (calls.length > 0 ? "" : atLeast(step.chunks ?? 0, sentence(ask)))
  const blocks: ContentBlock[] = []
  if (step.thinking !== undefined) {
    blocks.push({ type: "thinking", thinking: step.thinking, signature: step.signature ?? usualSignature })
  }
  if (text !== "") blocks.push({ type: "text", text })
  for (const call of calls) blocks.push({ type: "tool_use", call })
  return blocks
}

function usualStop(ask: MessagesAsk, blocks: readonly ContentBlock[], step: Step): string {
  if (ask.maxTokens === 0) return "max_tokens"
  if (step.stopSequence !== undefined) return "stop_sequence"
  return blocks.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn"
}

/** What was asked, in tokens; cached ones are counted apart from it. */
export function inputTokens(ask: MessagesAsk): number {
  return tokens(ask.promptLength) + tokensPerMessage * ask.messageCount
}

function counted(ask: MessagesAsk, step: Step, blocks: readonly ContentBlock[]): Fields {
  return {
    input_tokens: inputTokens(ask),
    cache_creation_input_tokens: step.cacheWriteTokens ?? 0,
    cache_read_input_tokens: step.cachedTokens ?? 0,
    output_tokens: blocks.reduce((sum, block) => sum + tokens(lengthOf(block)), 0),
  }
}

function breakdown(step: Step): Fields {
  const written = step.cacheWriteTokens ?? 0
  return {
    cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 },
    service_tier: "standard",
  }
}

function lengthOf(block: ContentBlock): number {
  switch (block.type) {
    case "thinking":
      return block.thinking.length
    case "text":
      return block.text.length
    case "tool_use":
      return block.call.name.length + block.call.arguments.length
  }
}

/** The body of an answer, whole or as it stands when a stream begins. */
export function messageBody({ id, model, blocks, stopReason, stopSequence, usage }: Omit<Answer, "totals">): object {
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content: blocks.map(blockBody),
    stop_reason: stopReason,
    stop_sequence: stopSequence,
    usage,
  }
}

function blockBody(block: ContentBlock): object {
  if (block.type !== "tool_use") return block
  const { id, name, arguments: given } = block.call
  return { type: "tool_use", id, name, input: readJson(Buffer.from(given)) ?? {} }
}
