import type { BehaviourOf } from "../behaviour.ts"
import type { Answer, CompletionFacts, Usage } from "./chat-answer.ts"
import type { ToolCall } from "./conversation.ts"
import type { StreamEvent } from "./event-stream.ts"
import { inPieces, spoken, words } from "./model-voice.ts"

const argumentPieces = 3

type Step = BehaviourOf<"chat">
type Delta = Readonly<Record<string, unknown>>

/** The events of a streamed answer. */
export function* chatEvents(facts: CompletionFacts, answer: Answer, step: Step): Generator<StreamEvent> {
  if (step.roleChunk !== false) {
    yield { text: chunkEvent(facts, { role: "assistant", content: "" }), content: false }
  }
  let isFirst = true
  for (const delta of deltas(answer, step.chunks)) {
    yield { text: chunkEvent(facts, delta), content: isFirst }
    isFirst = false
  }
  const end = { content: isFirst }
  const inFinish = step.usage === "in_finish" ? answer.usage : undefined
  if (answer.finishReason !== null) yield { text: chunkEvent(facts, {}, answer.finishReason, inFinish), ...end }
  const usageChunks = !facts.includeUsage || inFinish !== undefined || step.usage === "none" ? 0 : 1
  for (let sent = 0; sent < (step.usage === "twice" ? 2 * usageChunks : usageChunks); sent++) {
    yield { text: usageEvent(facts, answer.usage), content: false }
  }
  if (step.done !== false) yield { text: doneEvent, content: false }
}

function* deltas({ reasoning, text, toolCalls }: Answer, chunks: number | undefined): Generator<Delta> {
  for (const piece of words(reasoning)) yield { reasoning_content: piece }
  for (const content of spoken(text, chunks)) yield { content }
  for (const [index, call] of toolCalls.entries()) yield* toolCallDeltas(index, call)
}

function* toolCallDeltas(index: number, { id, name, arguments: given }: ToolCall): Generator<Delta> {
  yield { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }
  for (const piece of inPieces(given, argumentPieces)) {
    yield { tool_calls: [{ index, function: { arguments: piece } }] }
  }
}

const doneEvent = "data: [DONE]\n\n"

/** One chunk as an event; asked for usage, the real vendor puts `usage: null` into all chunks but the last. */
export function chunkEvent(facts: CompletionFacts, delta: Delta, finish: string | null = null, usage?: Usage): string {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }]
  return event(facts, choices, usage === undefined && facts.includeUsage ? null : usage)
}

function usageEvent(facts: CompletionFacts, usage: Usage): string {
  return event(facts, [], usage)
}

function event({ id, created, model }: CompletionFacts, choices: readonly object[], usage?: Usage): string {
  const body = {
    id,
    object: "chat.completion.chunk",
    created,
    model,
    system_fingerprint: "fp_simulated",
    choices,
    usage,
  }
  return `data: ${JSON.stringify(body)}\n\n`
}

/** How a healthy stream ends: finish, usage if it was asked for, `[DONE]`. */
export function finishEvents(facts: CompletionFacts, usage: Usage): string {
  return chunkEvent(facts, {}, "stop") + (facts.includeUsage ? usageEvent(facts, usage) : "") + doneEvent
}
