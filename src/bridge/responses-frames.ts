import type { JsonObject, JsonValue } from "../core/json.ts"

/** The kinds of text that an output item is made of, and the events that carry each. */
const partEvents = {
  output_text: {
    field: "text",
    index: "content_index",
    added: "response.content_part.added",
    delta: "response.output_text.delta",
    whole: "response.output_text.done",
    done: "response.content_part.done",
  },
  refusal: {
    field: "refusal",
    index: "content_index",
    added: "response.content_part.added",
    delta: "response.refusal.delta",
    whole: "response.refusal.done",
    done: "response.content_part.done",
  },
  reasoning_text: {
    field: "text",
    index: "content_index",
    added: "response.content_part.added",
    delta: "response.reasoning_text.delta",
    whole: "response.reasoning_text.done",
    done: "response.content_part.done",
  },
  summary_text: {
    field: "text",
    index: "summary_index",
    added: "response.reasoning_summary_part.added",
    delta: "response.reasoning_summary_text.delta",
    whole: "response.reasoning_summary_text.done",
    done: "response.reasoning_summary_part.done",
  },
} as const

export type PartKind = keyof typeof partEvents

export function isPartKind(type: unknown): type is PartKind {
  return typeof type === "string" && Object.hasOwn(partEvents, type)
}

/** Where in the output a part stands. */
export interface PartPlace {
  readonly itemId: string
  readonly outputIndex: number
  readonly partIndex: number
}

/** A part with this text; clients read `annotations` and `logprobs` without asking whether they are there. */
export function partOf(kind: PartKind, text: string, logprobs: readonly JsonValue[]): JsonObject {
  if (kind === "output_text") return { type: kind, text, annotations: [], logprobs }
  return { type: kind, [partEvents[kind].field]: text }
}

/** Writes the numbered events of one Responses stream. */
export class ResponseFrames {
  #next = 0
  #text = ""

  /** The number of the next event. */
  get next(): number {
    return this.#next
  }

  /** Everything written since the last call. */
  take(): string {
    const text = this.#text
    this.#text = ""
    return text
  }

  event(type: string, fields: JsonObject): void {
    this.#text += `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: this.#next, ...fields })}\n\n`
    this.#next += 1
  }

  itemAdded(outputIndex: number, item: JsonObject): void {
    this.event("response.output_item.added", { output_index: outputIndex, item })
  }

  itemDone(outputIndex: number, item: JsonObject): void {
    this.event("response.output_item.done", { output_index: outputIndex, item })
  }

  partAdded(kind: PartKind, place: PartPlace, part: JsonObject): void {
    this.event(partEvents[kind].added, { ...placeFields(kind, place), part })
  }

  partDelta(kind: PartKind, place: PartPlace, delta: string, logprobs: readonly JsonValue[]): void {
    const fields = { ...placeFields(kind, place), delta }
    this.event(partEvents[kind].delta, kind === "output_text" ? { ...fields, logprobs } : fields)
  }

  partDone(kind: PartKind, place: PartPlace, part: JsonObject): void {
    const { field, whole, done } = partEvents[kind]
    const fields = placeFields(kind, place)
    const text = { ...fields, [field]: part[field] ?? "" }
    this.event(whole, kind === "output_text" ? { ...text, logprobs: part.logprobs ?? [] } : text)
    this.event(done, { ...fields, part })
  }

  argumentsDelta(itemId: string, outputIndex: number, delta: string): void {
    this.event("response.function_call_arguments.delta", { item_id: itemId, output_index: outputIndex, delta })
  }

  argumentsDone(itemId: string, outputIndex: number, call: JsonObject): void {
    this.event("response.function_call_arguments.done", {
      item_id: itemId,
      output_index: outputIndex,
      name: call.name ?? "",
      arguments: call.arguments ?? "",
    })
  }
}

function placeFields(kind: PartKind, place: PartPlace): JsonObject {
  return { item_id: place.itemId, output_index: place.outputIndex, [partEvents[kind].index]: place.partIndex }
}

/** The text of a part in whichever field its kind keeps it. */
export function partText(kind: PartKind, part: JsonObject): string {
  const text = part[partEvents[kind].field]
  return typeof text === "string" ? text : ""
}
