import type { JsonObject } from "../core/json.ts"
import { isBlank } from "./chat-to-messages-content.ts"
import { readHistory } from "./chat-to-messages-history.ts"
import { userIdFor } from "./chat-to-messages-ids.ts"
import { toolFields } from "./chat-to-messages-tools.ts"
import { type Field, isAbsent, listAt, numberAt, objectAt, refuse, stringAt } from "./fields.ts"
import type { BridgeOptions } from "./translator.ts"

/** The vendor demands a limit; this one stands in where the caller sets none. */
export const defaultMaxTokens = 4096

/** Chat completions goes up to 2, messages does not. */
const highestTemperature = 1

const askForJson = "Answer with one valid JSON object and nothing else: no prose and no code fence around it."

/** The messages request for a chat request. Fields without a counterpart are left out. */
export function messagesRequest(asked: JsonObject, options: BridgeOptions): JsonObject {
  const choices = numberAt(asked.n, "n")
  if (choices !== undefined && choices !== 1) refuse("n", "this model gives one choice only")
  const { system, turns } = readHistory(asked.messages)
  const format = readFormat(asked.response_format)
  const systemTexts = format.system === undefined ? system : [...system, format.system]
  return {
    model: options.upstreamModel,
    max_tokens: readMaxTokens(asked),
    system: systemTexts.length === 0 ? undefined : systemTexts.join("\n\n"),
    messages: turns.map(({ role, blocks }) => ({ role, content: blocks })),
    stream: options.stream ? true : undefined,
    ...readSampling(asked),
    stop_sequences: readStops(asked.stop),
    ...toolFields(asked, turns),
    metadata: readMetadata(asked),
    output_config: format.output,
  }
}

function readMaxTokens(asked: JsonObject): number {
  const name = isAbsent(asked.max_completion_tokens) ? "max_tokens" : "max_completion_tokens"
  const limit = numberAt(asked[name], name) ?? defaultMaxTokens
  return Number.isSafeInteger(limit) && limit > 0 ? limit : refuse(name, "must be a whole number above 0")
}

function readSampling(asked: JsonObject): JsonObject {
  const temperature = numberAt(asked.temperature, "temperature")
  const topP = numberAt(asked.top_p, "top_p")
  return {
    temperature: temperature === undefined ? undefined : Math.min(Math.max(temperature, 0), highestTemperature),
    // Many clients send the neutral 1 always, and the vendor's newer models refuse the two together.
    top_p: temperature !== undefined && topP === 1 ? undefined : topP,
  }
}

function readStops(stop: Field): readonly string[] | undefined {
  if (isAbsent(stop)) return undefined
  const list = typeof stop === "string" ? [stop] : listAt(stop, "stop", "must be a string or an array of strings")
  // The vendor refuses blank ones.
  const stops = list.map((entry, index) => stringAt(entry, `stop[${index}]`)).filter((entry) => !isBlank(entry))
  return stops.length === 0 ? undefined : stops
}

function readMetadata(asked: JsonObject): JsonObject | undefined {
  const name = isAbsent(asked.user) ? "safety_identifier" : "user"
  if (isAbsent(asked[name])) return undefined
  const user = stringAt(asked[name], name)
  return user === "" ? undefined : { user_id: userIdFor(user) }
}

interface Format {
  /** A line of system text that asks for the format. */
  readonly system?: string
  readonly output?: JsonObject
}

function readFormat(format: Field): Format {
  if (isAbsent(format)) return {}
  const { type, json_schema: wanted } = objectAt(format, "response_format")
  switch (type) {
    case "text":
      return {}
    case "json_object":
      return { system: askForJson }
    case "json_schema": {
      const { schema } = objectAt(wanted, "response_format.json_schema")
      return { output: { format: { type, schema: objectAt(schema, "response_format.json_schema.schema") } } }
    }
    default:
      return refuse("response_format.type", `${JSON.stringify(type)} is none of "text", "json_object", "json_schema"`)
  }
}
