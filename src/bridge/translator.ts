import type { JsonObject, JsonValue } from "../core/json.ts"
import type { TokenUsage } from "../core/usage.ts"

/**
 * A pure translation between the dialect a caller speaks and the one an upstream speaks. It knows no HTTP, no money and no vendor.
 */
export interface Bridge {
  /** The upstream's request for what the caller asked; throws a GatewayError (invalid_parameter) for what cannot be bridged. */
  request(asked: JsonObject, options: BridgeOptions): JsonObject
  /** The caller's whole answer for the upstream's whole answer; `counted` stands in where that reports no usage. */
  answer(answered: JsonObject, asked: JsonObject, counted?: TokenUsage | null): JsonObject
  /** Reads one stream, event by event. */
  stream(asked: JsonObject): StreamTranslator
}

export interface BridgeOptions {
  /** The model name to write into the upstream's request. */
  readonly upstreamModel: string
  readonly stream: boolean
  /** False for an upstream that refuses `stream_options`. */
  readonly streamOptions: boolean
  /** The upstream's own settings; a bridge reads those it knows. */
  readonly settings?: Readonly<Record<string, JsonValue>>
}

/** The state of one translated stream. Frames are the text of whole server-sent events, blank lines included. */
export interface StreamTranslator {
  /** Takes one event of the upstream and returns the frames that may go to the caller now; "" for none. */
  read(event: string | null, data: string): string
  /** The first token was seen: content, reasoning, a tool call, a refusal or a finish. */
  readonly begun: boolean
  /** The upstream's own end marker was seen. */
  readonly ended: boolean
  /** The upstream's answer is whole, with or without its end marker, so the caller's stream may end as a success. */
  readonly complete: boolean
  /** An error that the upstream sent as an event, as it wrote it. */
  readonly error: string | null
  /** Grows with each event that is neither a comment nor a ping. */
  readonly progress: number
  /** The number of the next event, in dialects that number them. */
  readonly sequence?: number
  /** What the upstream reported so far; null: nothing, or nothing that can be charged by. */
  readonly usage: TokenUsage | null
  /** The last usage that the upstream reported cannot be charged by. */
  readonly usageInvalid: boolean
  /** What the model has produced so far, for counting. */
  readonly produced: string
  /** The last frames of a successful stream, end marker included; `counted` stands in where the upstream reported no usage. */
  closing(counted: TokenUsage | null): string
}
