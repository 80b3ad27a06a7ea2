import { isObject, type JsonObject, type JsonValue } from "../core/json.ts"
import { listOf } from "./responses-fields.ts"

/** What tells one response from another. */
export interface ResponseState {
  readonly id: string
  readonly createdAt: number
  readonly serviceTier: string | null
  readonly status: "in_progress" | "completed" | "incomplete" | "failed"
  readonly output: readonly JsonObject[]
  readonly usage: JsonObject | null
  readonly incompleteReason: string | null
  readonly error: JsonObject | null
}

/** Request fields that a response repeats, and what stands there where the caller left one out. */
const echoed: Readonly<Record<string, JsonValue>> = {
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  prompt_cache_key: null,
  safety_identifier: null,
  temperature: 1,
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: "disabled",
  user: null,
}

/** The Responses object. It is written whole even at the start of a stream, as clients expect. */
export function responseObject(asked: JsonObject, state: ResponseState): JsonObject {
  const reasoning = isObject(asked.reasoning) ? asked.reasoning : {}
  const text = isObject(asked.text) ? asked.text : {}
  return {
    id: state.id,
    object: "response",
    created_at: state.createdAt,
    status: state.status,
    background: false,
    completed_at: state.status === "completed" ? Math.max(state.createdAt, nowInSeconds()) : null,
    error: state.error,
    incomplete_details: state.incompleteReason === null ? null : { reason: state.incompleteReason },
    model: typeof asked.model === "string" ? asked.model : "",
    output: state.output,
    previous_response_id: null,
    reasoning: { effort: reasoning.effort ?? null, summary: reasoning.summary ?? null },
    service_tier: state.serviceTier ?? asked.service_tier ?? "auto",
    // Nothing is kept here, whatever was asked for.
    store: false,
    text: { ...text, format: text.format ?? { type: "text" } },
    ...Object.fromEntries(Object.entries(echoed).map(([name, fallback]) => [name, asked[name] ?? fallback])),
    usage: state.usage,
  }
}

export function nowInSeconds(): number {
  return Math.floor(Date.now() / 1000)
}

/** The names of the functions that the model may call. */
export function toolNames(asked: JsonObject): ReadonlySet<string> {
  const names = listOf(asked.tools).map((tool) => (isObject(tool) && typeof tool.name === "string" ? tool.name : ""))
  return new Set(names.filter((name) => name !== ""))
}

/** The ids of the calls that the conversation holds already. */
export function earlierCallIds(asked: JsonObject): readonly string[] {
  return listOf(asked.input).flatMap((item) =>
    isObject(item) && typeof item.call_id === "string" ? [item.call_id] : [],
  )
}
