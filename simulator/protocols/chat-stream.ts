import type { BehaviourOf } from "../behaviour.ts"
import type { Piece } from "../wire/reply.ts"
import type { HeaderPair } from "../wire/request-parser.ts"
import type { Answer, CompletionFacts, ToolCall, Usage } from "./chat-answer.ts"

const defaultGapMs = 5
const argumentPieces = 3

const lineEnds = { lf: "\n", crlf: "\r\n", cr: "\r" } as const

export const eventStreamHeaders: readonly HeaderPair[] = [
  ["content-type", "text/event-stream; charset=utf-8"],
  ["cache-control", "no-cache"],
]

type Step = BehaviourOf<"chat">
type Delta = Readonly<Record<string, unknown>>

const encoder = new TextEncoder()

/** The events of a streamed answer, each made when the one before has been written. */
export function* chatPieces(facts: CompletionFacts, answer: Answer, step: Step): Generator<Piece> {
  const eol = lineEnds[step.eol ?? "lf"]
  const gapMs = step.gapMs ?? defaultGapMs
  let isFirst = true
  for (const { text, content } of chatEvents(facts, answer, step)) {
    const comment = step.comments === true ? `: keep-alive${eol}${eol}` : ""
    const bytes = encoder.encode(comment + text.replaceAll("\n", eol))
    const delay = content ? step.firstTokenDelayMs : undefined
    if (isFirst && delay === undefined) yield { bytes }
    else yield { bytes, afterMs: delay ?? gapMs }
    isFirst = false
  }
}

interface ChatEvent {
  /** With LF line ends. */
  readonly text: string
  /** True for the first event that carries something of the answer. */
  readonly content: boolean
}

function* chatEvents(facts: CompletionFacts, answer: Answer, step: Step): Generator<ChatEvent> {
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
  for (const content of chunks === undefined ? words(text) : inPieces(text, chunks)) yield { content }
  for (const [index, call] of toolCalls.entries()) yield* toolCallDeltas(index, call)
}

function* toolCallDeltas(index: number, { id, name, arguments: given }: ToolCall): Generator<Delta> {
  yield { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }
  for (const piece of inPieces(given, argumentPieces)) {
    yield { tool_calls: [{ index, function: { arguments: piece } }] }
  }
}

/** Each word with the white space after it. */
function words(text: string): string[] {
  return text.match(/\s*\S+\s*/g) ?? (text === "" ? [] : [text])
}

/** As many pieces as told, cut between code points; a text shorter than that gives one for each code point. */
function inPieces(text: string, count: number): string[] {
  const points = [...text]
  const pieces = Math.min(count, points.length)
  const start = (piece: number): number => Math.floor((piece * points.length) / pieces)
  return Array.from({ length: pieces }, (_, piece) => points.slice(start(piece), start(piece + 1)).join(""))
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
