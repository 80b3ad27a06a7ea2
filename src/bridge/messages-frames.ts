import type { JsonObject } from "../core/json.ts"
import type { Field } from "./fields.ts"
import { messagesUsage, thinkingMarker } from "./messages-to-chat-parts.ts"

/** What a message is begun with; all else comes in deltas. */
export interface MessageIdentity {
  readonly id: string
  readonly model: string
}

export type TextKind = "text" | "thinking"

/** Line ends to readers that know more of them than the protocol does; JSON may hold them unescaped. */
const foreignLineEnds = /[\u0085\u2028\u2029]/
const everyForeignLineEnd = /[\u0085\u2028\u2029]/g

/** Writes the events of one messages stream. Its blocks come one after another, numbered without a gap. */
export class MessageFrames {
  #text = ""
  #index = -1
  /** A delta of the open block up to its text. */
  #deltaHead = ""

  /** Everything written since the last call. */
  take(): string {
    const text = this.#text
    this.#text = ""
    return text
  }

  /** Usage is zero here and told at the end. */
  messageStart({ id, model }: MessageIdentity): void {
    const message = {
      id,
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: messagesUsage(null),
    }
    this.#event("message_start", { message })
  }

  textStart(kind: TextKind): void {
    const block = kind === "text" ? { type: kind, text: "" } : { type: kind, thinking: "", signature: "" }
    this.#blockStart(block, `${kind}_delta`, kind)
  }

  toolStart(id: string, name: string): void {
    this.#blockStart({ type: "tool_use", id, name, input: {} }, "input_json_delta", "partial_json")
  }

  /** The next piece of the open block: its text, or the JSON of its input. */
  delta(piece: string): void {
    this.#text += `${this.#deltaHead + quoted(piece)}}}\n\n`
  }

  /** Goes directly before the end of a thinking block. */
  signature(): void {
    const delta = { type: "signature_delta", signature: thinkingMarker }
    this.#event("content_block_delta", { index: this.#index, delta })
  }

  blockStop(): void {
    this.#event("content_block_stop", { index: this.#index })
  }

  messageEnd(stop: { readonly stop_reason: Field; readonly stop_sequence: Field }, usage: Field): void {
    const { stop_reason, stop_sequence } = stop
    this.#event("message_delta", { delta: { stop_reason, stop_sequence }, usage })
    this.#event("message_stop", {})
  }

  /** The last event of a stream that failed. */
  error(envelope: JsonObject): void {
    this.#event("error", envelope)
  }

  #blockStart(block: JsonObject, deltaType: string, field: string): void {
    this.#index += 1
    this.#event("content_block_start", { index: this.#index, content_block: block })
    this.#deltaHead = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},"delta":{"type":"${deltaType}","${field}":`
  }

  #event(type: string, fields: JsonObject): void {
    this.#text += `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
  }
}

function quoted(text: string): string {
  const json = JSON.stringify(text)
  if (!foreignLineEnds.test(json)) return json
  return json.replace(everyForeignLineEnd, (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, "0")}`)
}
