import { isObject, type JsonObject } from "../core/json.ts"
import { writeMessagesUsage } from "../core/messages-usage.ts"
import type { TokenUsage } from "../core/usage.ts"
import type { Field } from "./fields.ts"
import { listOf } from "./responses-fields.ts"

/** The signature of thinking that the gateway made out of an upstream's reasoning; only such blocks may be sent back to one. */
export const thinkingMarker = "tollgate-reasoning-v1"

/** What most chat upstreams take as the name of a function. */
export const defaultToolNameLimit = 64

const plainName = /^[A-Za-z0-9_-]+$/
const hashDigits = 8
const shortened = /_([0-9a-f]{8})$/

export interface ToolNames {
  /** The name a tool of the caller has upstream. */
  toUpstream(name: string): string
  /** The caller's name for what the upstream called. */
  toCaller(name: string): string
}

/**
 * Names that an upstream would refuse go shortened, and come back as the caller knows them; `limit` null leaves all as they are.
 * The way back goes by the hash in the name, so it is the same whatever the limit was.
 */
export function toolNames(asked: JsonObject, limit: number | null): ToolNames {
  let known: readonly string[] | null = null
  return {
    toUpstream: (name) => (limit === null ? name : upstreamName(name, limit)),
    toCaller(name) {
      const hash = shortened.exec(name)?.[1]
      if (hash === undefined) return name
      known ??= namesIn(asked)
      return known.includes(name) ? name : (known.find((original) => hashOf(original) === hash) ?? name)
    },
  }
}

function upstreamName(name: string, limit: number): string {
  if (name.length <= limit && plainName.test(name)) return name
  const start = name.slice(0, Math.max(limit - hashDigits - 1, 0)).replaceAll(/[^A-Za-z0-9_-]/g, "_")
  return `${start}_${hashOf(name)}`
}

function hashOf(name: string): string {
  return new Bun.CryptoHasher("sha256").update(name).digest("hex").slice(0, hashDigits)
}

/** Calls of earlier turns count too: a model repeats them even where the tool is no longer offered. */
function namesIn(asked: JsonObject): readonly string[] {
  return [...listOf(asked.tools), ...earlierCalls(asked)].flatMap((named) =>
    isObject(named) && typeof named.name === "string" ? [named.name] : [],
  )
}

export function mintMessageId(): string {
  return `msg_${freshDigits()}`
}

export function mintToolId(): string {
  return `toolu_${freshDigits()}`
}

function freshDigits(): string {
  return crypto.randomUUID().replaceAll("-", "")
}

/**
 * Gives each call of one answer its id: the upstream's own, or a new one where it has none, has it twice or takes one that
 * the conversation already holds, since the caller could not answer such a call.
 */
export function toolIdsFor(asked: JsonObject): (upstreamId: unknown) => string {
  let used: Set<unknown> | null = null
  return (upstreamId) => {
    used ??= new Set(earlierCalls(asked).map(({ id }) => id))
    const isUsable = typeof upstreamId === "string" && upstreamId !== "" && !used.has(upstreamId)
    const id = isUsable ? upstreamId : mintToolId()
    used.add(id)
    return id
  }
}

function earlierCalls(asked: JsonObject): readonly JsonObject[] {
  return listOf(asked.messages)
    .flatMap((message) => (isObject(message) && message.role === "assistant" ? listOf(message.content) : []))
    .filter((block) => isObject(block))
    .filter(({ type }) => type === "tool_use")
}

export type StopReason = "end_turn" | "max_tokens" | "stop_sequence" | "tool_use" | "refusal"

export interface Stop {
  readonly stop_reason: StopReason
  readonly stop_sequence: string | null
}

/** What an upstream's end is told by; `matchedStop` is the stop sequence that some servers name beside the finish. */
export interface Ending {
  readonly finishReason: string | null
  readonly refused: boolean
  readonly toolBlocks: number
  readonly matchedStop: unknown
  /** The caller's own, as they stand in its request. */
  readonly stopSequences: Field
}

const truncations: ReadonlySet<string> = new Set(["length", "max_tokens", "model_length"])
const filters: ReadonlySet<string> = new Set(["content_filter", "sensitive"])
const breakdowns: ReadonlySet<string> = new Set(["error", "insufficient_system_resource", "network_error"])

/** A finish reason as it was meant: blank ones, and the word "null", are none. */
export function finishReasonOf(field: unknown): string | null {
  const reason = typeof field === "string" ? field.trim() : ""
  return reason === "" || reason === "null" ? null : reason
}

/** True for the finish reasons by which some vendors say that they broke down. */
export function isBreakdown(finishReason: string | null): boolean {
  return finishReason !== null && breakdowns.has(finishReason)
}

/** Whether tools were called decides more than the upstream's word: many end a turn with calls as any other. */
export function stopReasonOf({ finishReason, refused, toolBlocks, matchedStop, stopSequences }: Ending): Stop {
  const reason = finishReason ?? ""
  if (refused || filters.has(reason)) return { stop_reason: "refusal", stop_sequence: null }
  if (truncations.has(reason)) return { stop_reason: "max_tokens", stop_sequence: null }
  if (toolBlocks > 0) return { stop_reason: "tool_use", stop_sequence: null }
  if (reason === "stop" && typeof matchedStop === "string" && listOf(stopSequences).includes(matchedStop)) {
    return { stop_reason: "stop_sequence", stop_sequence: matchedStop }
  }
  return { stop_reason: "end_turn", stop_sequence: null }
}

const noUsage: TokenUsage = {
  input: 0,
  cachedInput: 0,
  cacheWrite: 0,
  audioInput: 0,
  output: 0,
  reasoning: 0,
  audioOutput: 0,
}

/** The usage that a message carries; clients compute with its numbers, so they are there even where nobody counted. */
export function messagesUsage(usage: TokenUsage | null): JsonObject {
  return writeMessagesUsage(usage ?? noUsage)
}
