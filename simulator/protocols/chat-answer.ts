import type { BehaviourOf } from "../behaviour.ts"
import { type ChatAsk, readChatAsk } from "./chat-request.ts"
import { sampleArguments, toolToCall } from "./chat-tools.ts"
import type { VendorRequest } from "./protocol.ts"

const charactersPerToken = 4
const tokensPerMessage = 4
/** How much of a message the default answer quotes. */
const quotedCharacters = 60

/** What every chunk and every completion repeats. */
export interface CompletionFacts {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly includeUsage: boolean
}

export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
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
  const toolCalls = toolCallsOf(ask, step)
  const text = step.text ?? (toolCalls.length > 0 ? "" : atLeast(step.chunks ?? 0, sentence(ask)))
  const reasoning = step.reasoning ?? ""
  const finishReason =
    step.finishReason === undefined ? (toolCalls.length > 0 ? "tool_calls" : "stop") : step.finishReason
  const spoken = { text, reasoning, toolCalls, finishReason }
  const given = step.usage
  const usage = given === null || typeof given === "object" ? given : countedUsage(ask, spoken, step.cachedTokens ?? 0)
  return { ...spoken, usage }
}

function toolCallsOf(ask: ChatAsk, step: BehaviourOf<"chat">): ToolCall[] {
  if (step.toolCalls !== undefined) return step.toolCalls.map((call) => ({ id: `call_${shortId()}`, ...call }))
  const tool = step.text === undefined ? toolToCall(ask) : undefined
  return tool === undefined ? [] : [{ id: `call_${shortId()}`, name: tool.name, arguments: sampleArguments(tool) }]
}

function sentence(ask: ChatAsk): string {
  if (ask.lastRole === "tool") return `The tool answered ${quoted(ask.lastText)}, so that is what I would go by.`
  if (ask.lastUserText === "") return "Hello! I am a simulated model. How can I help you today?"
  return `You said ${quoted(ask.lastUserText)}. I am a simulated model, and I am happy to help with that.`
}

/** Repeated until there is something for every chunk. */
function atLeast(characters: number, text: string): string {
  return text.length >= characters ? text : `${text} `.repeat(Math.ceil(characters / text.length))
}

/** The end of a text, cut between code points so that no half emoji is made. */
function quoted(text: string): string {
  const points = [...text.slice(-4 * quotedCharacters).trim()]
  const tail = points.slice(-quotedCharacters).join("")
  return `"${points.length > quotedCharacters ? "…" : ""}${tail}"`
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

function tokens(characters: number): number {
  return Math.ceil(characters / charactersPerToken)
}

function shortId(): string {
  return Bun.randomUUIDv7("base64url")
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
