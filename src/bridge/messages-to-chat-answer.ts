import { GatewayError } from "../core/errors.ts"
import { isObject, type JsonObject, parseObject } from "../core/json.ts"
import { readChatUsage, type TokenUsage } from "../core/usage.ts"
import type { Field } from "./fields.ts"
import {
  defaultToolNameLimit,
  finishReasonOf,
  isBreakdown,
  messagesUsage,
  mintMessageId,
  stopReasonOf,
  thinkingMarker,
  toolIdsFor,
  toolNames,
} from "./messages-to-chat-parts.ts"
import type { CallFragment } from "./responses-calls.ts"
import { readPieces } from "./responses-chat-pieces.ts"
import { listOf } from "./responses-fields.ts"

/** The message for a whole chat completion; `counted` stands in where the upstream reports no usage to charge by. */
export function chatToMessagesAnswer(
  answered: JsonObject,
  asked: JsonObject,
  counted: TokenUsage | null = null,
): JsonObject {
  const choice = firstChoice(answered.choices)
  const pieces = readPieces(choice) ?? incomprehensible("its first choice has no message")
  const finishReason = finishReasonOf(choice.finish_reason)
  if (isBreakdown(finishReason)) {
    throw new GatewayError("upstream_error", `the upstream ended its answer with an error (${finishReason})`)
  }
  const calls = pieces.calls.filter(({ name }) => name !== "")
  const reading = readChatUsage(answered.usage)
  return {
    id: mintMessageId(),
    type: "message",
    role: "assistant",
    model: asked.model,
    content: [
      ...(pieces.reasoning === "" ? [] : [thinkingBlock(pieces.reasoning)]),
      ...textBlocks(pieces.text),
      ...textBlocks(pieces.refusal),
      ...toolBlocks(calls, asked),
    ],
    ...stopReasonOf({
      finishReason,
      refused: pieces.refusal !== "",
      toolBlocks: calls.length,
      matchedStop: choice.stop_reason ?? choice.matched_stop,
      stopSequences: asked.stop_sequences,
    }),
    usage: messagesUsage(reading === null || reading === "invalid" ? counted : reading),
  }
}

function firstChoice(choices: Field): JsonObject {
  const list = listOf(choices).filter((choice) => isObject(choice))
  return list.find(({ index }) => index === 0) ?? list[0] ?? incomprehensible("it has no choices")
}

function incomprehensible(why: string): never {
  throw new GatewayError("upstream_invalid_response", "the upstream's answer could not be understood", {
    internal: `the chat answer cannot be told as a message: ${why}`,
  })
}

function thinkingBlock(thinking: string): JsonObject {
  return { type: "thinking", thinking, signature: thinkingMarker }
}

/** A block of nothing but space would be refused when the caller sends it back to the vendor of messages. */
function textBlocks(text: string): readonly JsonObject[] {
  return text.trim() === "" ? [] : [{ type: "text", text }]
}

function toolBlocks(calls: readonly CallFragment[], asked: JsonObject): readonly JsonObject[] {
  const idFor = toolIdsFor(asked)
  const names = toolNames(asked, defaultToolNameLimit)
  return calls.map((call) => {
    const input = inputOf(call.arguments)
    return { type: "tool_use", id: idFor(call.id), name: names.toCaller(call.name), input }
  })
}

/** The arguments as an object, which some upstreams wrap into text twice; the model's mistakes are the caller's tools to answer. */
export function inputOf(text: string): JsonObject {
  const once = parseObject(text)
  if (once !== null) return once as JsonObject
  const inner = /^\s*"/.test(text) ? unquoted(text) : ""
  return (parseObject(inner) ?? {}) as JsonObject
}

function unquoted(text: string): string {
  try {
    return String(JSON.parse(text))
  } catch {
    return ""
  }
}
