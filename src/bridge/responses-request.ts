import { isObject, type JsonObject, type JsonValue } from "../core/json.ts"
import { isAbsent, nameAt, numberAt, objectAt, refuse, shown } from "./fields.ts"
import { listOf } from "./responses-fields.ts"
import { chatMessages } from "./responses-input.ts"
import { chatTools } from "./responses-tools.ts"
import type { BridgeOptions } from "./translator.ts"

/** Fields that mean something only where responses are kept. */
const needsKeeping = ["previous_response_id", "conversation", "prompt"] as const

/** Fields that both dialects spell and mean alike. */
const numbers = ["temperature", "top_p", "frequency_penalty", "presence_penalty"] as const

/**
 * The chat-completions request for a Responses request. What changes the answer is translated or refused; hints, like
 * where to cache or whether to store, are left out, since many chat upstreams refuse fields they do not know.
 */
export function chatRequest(asked: JsonObject, options: BridgeOptions): JsonObject {
  refuseUnbridgeable(asked)
  return {
    model: options.upstreamModel,
    messages: chatMessages(asked),
    ...chatTools(asked),
    ...sampling(asked),
    ...textFields(asked),
    ...callerFields(asked),
    ...streamFields(options),
  }
}

function refuseUnbridgeable(asked: JsonObject): void {
  for (const name of needsKeeping) {
    if (isAbsent(asked[name])) continue
    refuse(name, "this model's upstream keeps no responses, conversations or prompts; send the whole input instead")
  }
  if (asked.background === true) refuse("background", "this model's upstream cannot answer in the background")
}

function sampling(asked: JsonObject): JsonObject {
  const fields: Record<string, JsonValue> = {}
  for (const name of numbers) {
    const value = numberAt(asked[name], name)
    if (value !== undefined) fields[name] = value
  }
  const maxTokens = numberAt(asked.max_output_tokens, "max_output_tokens")
  if (maxTokens !== undefined) fields.max_tokens = maxTokens
  const reasoning = isAbsent(asked.reasoning) ? {} : objectAt(asked.reasoning, "reasoning")
  if (!isAbsent(reasoning.effort)) fields.reasoning_effort = nameAt(reasoning.effort, "reasoning.effort")
  const alternatives = numberAt(asked.top_logprobs, "top_logprobs") ?? 0
  if (alternatives > 0) fields.top_logprobs = alternatives
  if (alternatives > 0 || listOf(asked.include).includes("message.output_text.logprobs")) fields.logprobs = true
  return fields
}

function textFields(asked: JsonObject): JsonObject {
  if (isAbsent(asked.text)) return {}
  const { format, verbosity } = objectAt(asked.text, "text")
  return {
    ...(isAbsent(format) ? {} : responseFormat(objectAt(format, "text.format"))),
    ...(isAbsent(verbosity) ? {} : { verbosity }),
  }
}

function responseFormat(format: JsonObject): JsonObject {
  if (format.type === "text") return {}
  if (format.type === "json_object") return { response_format: { type: "json_object" } }
  if (format.type !== "json_schema") {
    refuse("text.format.type", `must be "text", "json_object" or "json_schema", not ${shown(format.type)}`)
  }
  const { description, strict } = format
  const schema = {
    name: nameAt(format.name, "text.format.name"),
    schema: objectAt(format.schema, "text.format.schema"),
    ...(isAbsent(description) ? {} : { description }),
    ...(isAbsent(strict) ? {} : { strict }),
  }
  return { response_format: { type: "json_schema", json_schema: schema } }
}

function callerFields(asked: JsonObject): JsonObject {
  const { user, metadata, service_tier: tier } = asked
  return {
    ...(isAbsent(user) ? {} : { user }),
    ...(isObject(metadata) && Object.keys(metadata).length > 0 ? { metadata } : {}),
    // The two usual values say nothing that leaving the field out does not say.
    ...(isAbsent(tier) || tier === "auto" || tier === "default" ? {} : { service_tier: tier }),
  }
}

function streamFields(options: BridgeOptions): JsonObject {
  if (!options.stream) return {}
  return { stream: true, ...(options.streamOptions ? { stream_options: { include_usage: true } } : {}) }
}
