import type { BehaviourOf } from "../../behaviour.ts"
import type { ToolCall } from "../conversation.ts"
import { shortId } from "../ids.ts"
import { atLeast, sentence, tokens } from "../model-voice.ts"
import { toolCallsOf } from "../tool-use.ts"
import type { ResponsesAsk } from "./request.ts"

const tokensPerItem = 4

type Step = BehaviourOf<"responses">
type Fields = Readonly<Record<string, unknown>>

/** One thing the model puts out, with the id that every event about it repeats. */
export type OutputItem =
  | { readonly type: "reasoning"; readonly id: string; readonly text: string }
  | { readonly type: "message"; readonly id: string; readonly text: string }
  | { readonly type: "function_call"; readonly id: string; readonly call: ToolCall }

export interface Answer {
  readonly items: readonly OutputItem[]
  /** Undefined leaves it out. */
  readonly usage: Fields | undefined
}

/** The answer the step asks for; what it leaves open is what a lively model would say. */
export function decide(ask: ResponsesAsk, step: Step): Answer {
  const calls = toolCallsOf(ask, step, "call_")
  const text = step.text ?? (calls.length > 0 ? "" : atLeast(step.chunks ?? 0, sentence(ask)))
  const items: OutputItem[] = []
  if (step.reasoning !== undefined) items.push({ type: "reasoning", id: `rs_${shortId()}`, text: step.reasoning })
  if (text !== "" || calls.length === 0) items.push({ type: "message", id: `msg_${shortId()}`, text })
  for (const call of calls) items.push({ type: "function_call", id: `fc_${shortId()}`, call })
  return { items, usage: usageOf(ask, step, items) }
}

function usageOf(ask: ResponsesAsk, step: Step, items: readonly OutputItem[]): Fields | undefined {
  if (step.usage !== undefined) return step.usage === "none" ? undefined : step.usage
  const cached = step.cachedTokens ?? 0
  const input = Math.max(tokens(ask.promptLength) + tokensPerItem * ask.messageCount, cached)
  const output = items.reduce((sum, item) => sum + tokens(lengthOf(item)), 0)
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: tokens(step.reasoning?.length ?? 0) },
    total_tokens: input + output,
  }
}

function lengthOf(item: OutputItem): number {
  return item.type === "function_call" ? item.call.name.length + item.call.arguments.length : item.text.length
}

export type ItemStatus = "in_progress" | "completed" | "incomplete"

/** An item as the API writes it; without its content while it is only begun. */
export function itemBody(item: OutputItem, status: ItemStatus): Fields {
  const isBegun = status === "in_progress"
  switch (item.type) {
    case "reasoning":
      return { id: item.id, type: "reasoning", summary: isBegun ? [] : [summaryPart(item.text)] }
    case "message":
      return { id: item.id, type: "message", status, role: "assistant", content: isBegun ? [] : [textPart(item.text)] }
    case "function_call": {
      const { id: call_id, name, arguments: given } = item.call
      return { id: item.id, type: "function_call", status, call_id, name, arguments: isBegun ? "" : given }
    }
  }
}

export function textPart(text: string): Fields {
  return { type: "output_text", text, annotations: [], logprobs: [] }
}

export function summaryPart(text: string): Fields {
  return { type: "summary_text", text }
}

export interface ResponseFacts {
  readonly id: string
  readonly createdAt: number
  readonly model: string
  readonly asked: Fields
}

export function factsOf(ask: ResponsesAsk, step: Step): ResponseFacts {
  return {
    id: step.id ?? `resp_${shortId()}`,
    createdAt: Math.floor(Date.now() / 1000),
    model: step.model ?? ask.model,
    asked: ask.body,
  }
}

/** The whole object, which repeats what was asked and fills in what was not; `more` has status, output and usage. */
export function responseBody({ id, createdAt, model, asked }: ResponseFacts, more: Fields): Fields {
  return {
    id,
    object: "response",
    created_at: createdAt,
    status: "in_progress",
    background: false,
    error: null,
    incomplete_details: null,
    instructions: asked.instructions ?? null,
    max_output_tokens: asked.max_output_tokens ?? null,
    max_tool_calls: null,
    model,
    output: [],
    parallel_tool_calls: asked.parallel_tool_calls ?? true,
    previous_response_id: asked.previous_response_id ?? null,
    reasoning: asked.reasoning ?? { effort: null, summary: null },
    service_tier: "default",
    store: asked.store ?? true,
    temperature: asked.temperature ?? 1,
    text: asked.text ?? { format: { type: "text" }, verbosity: "medium" },
    tool_choice: asked.tool_choice ?? "auto",
    tools: asked.tools ?? [],
    top_logprobs: 0,
    top_p: asked.top_p ?? 1,
    truncation: asked.truncation ?? "disabled",
    usage: null,
    user: asked.user ?? null,
    metadata: asked.metadata ?? {},
    ...more,
  }
}
