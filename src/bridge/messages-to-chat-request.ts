import { GatewayError } from "../core/errors.ts"
import { isObject, type JsonObject } from "../core/json.ts"
import { userIdFor } from "./chat-to-messages-ids.ts"
import { type Field, isAbsent, listAt, numberAt, stringAt } from "./fields.ts"
import { chatMessages } from "./messages-to-chat-history.ts"
import { toolNames } from "./messages-to-chat-parts.ts"
import { type ChatTastes, chatTastes } from "./messages-to-chat-settings.ts"
import { chatTools } from "./messages-to-chat-tools.ts"
import type { BridgeOptions } from "./translator.ts"

/** The chat request for a messages request. Of its fields eleven have a counterpart; all others are left out. */
export function messagesToChatRequest(asked: JsonObject, options: BridgeOptions): JsonObject {
  if (typeof asked.model !== "string") throw new GatewayError("missing_model", "model: must be a string")
  const tastes = chatTastes(options.settings)
  const names = toolNames(asked, tastes.toolNameLimit)
  return {
    model: options.upstreamModel,
    messages: chatMessages(asked, tastes, names),
    ...maxTokens(asked.max_tokens, tastes),
    ...number("temperature", asked.temperature),
    ...number("top_p", asked.top_p),
    ...stops(asked.stop_sequences),
    ...chatTools(asked, names),
    ...user(asked.metadata),
    ...streamFields(options),
  }
}

function maxTokens(field: Field, { maxCompletionTokens }: ChatTastes): JsonObject {
  const limit = numberAt(field, "max_tokens")
  // Zero asks the vendor of messages to warm its cache only; the specification has it left out.
  if (limit === undefined || limit <= 0) return {}
  return maxCompletionTokens ? { max_completion_tokens: limit } : { max_tokens: limit }
}

function number(name: "temperature" | "top_p", field: Field): JsonObject {
  const value = numberAt(field, name)
  return value === undefined ? {} : { [name]: value }
}

function stops(field: Field): JsonObject {
  if (isAbsent(field)) return {}
  const list = listAt(field, "stop_sequences", "must be an array of strings")
  const stop = list.map((entry, index) => stringAt(entry, `stop_sequences[${index}]`)).filter((entry) => entry !== "")
  return stop.length === 0 ? {} : { stop }
}

function user(metadata: Field): JsonObject {
  const id = isObject(metadata) ? metadata.user_id : undefined
  return typeof id === "string" && id !== "" ? { user: userIdFor(id) } : {}
}

function streamFields({ stream, streamOptions }: BridgeOptions): JsonObject {
  if (!stream) return {}
  return { stream: true, ...(streamOptions ? { stream_options: { include_usage: true } } : {}) }
}
