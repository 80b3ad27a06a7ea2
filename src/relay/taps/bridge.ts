import type { StreamTranslator } from "../../bridge/translator.ts"
import type { ErrorDialect } from "../../core/endpoints.ts"
import type { GatewayError } from "../../core/errors.ts"
import type { TokenUsage } from "../../core/usage.ts"
import { utf8 } from "../../lib/bytes.ts"
import { type SseEvent, SseSplitter } from "../../lib/sse.ts"
import type { StreamState, StreamTap } from "./tap.ts"

/** `sequence` is the number the frame would have, in dialects that number their events. */
export type ErrorFrame = (error: GatewayError, requestId: string, dialect: ErrorDialect, sequence: number) => Uint8Array

/** Reads a stream through a translator: the caller gets the frames of its own dialect. */
export class BridgeTap implements StreamTap {
  readonly #translator: StreamTranslator
  readonly #splitter = new SseSplitter()
  readonly countable = true
  readonly #errorFrame: ErrorFrame

  readonly ping?: Uint8Array

  constructor(translator: StreamTranslator, errorFrame: ErrorFrame, ping?: Uint8Array) {
    this.#translator = translator
    this.#errorFrame = errorFrame
    if (ping !== undefined) this.ping = ping
  }

  push(chunk: Uint8Array): Uint8Array | null {
    return this.ended ? null : this.#translate(this.#splitter.push(chunk).events)
  }

  end(): Uint8Array | null {
    return this.ended ? null : this.#translate(this.#splitter.end().events)
  }

  get begun(): boolean {
    return this.#translator.begun
  }

  get ended(): boolean {
    return this.#translator.ended
  }

  get state(): StreamState {
    if (this.#translator.error !== null) return "error_sent"
    return this.#translator.complete ? "complete" : "open"
  }

  get error(): string | null {
    return this.#translator.error
  }

  get progress(): number {
    return this.#translator.progress
  }

  get usage(): TokenUsage | null {
    return this.#translator.usage
  }

  get usageInvalid(): boolean {
    return this.#translator.usageInvalid
  }

  get produced(): string {
    return this.#translator.produced
  }

  get wantsCount(): boolean {
    return this.#translator.usage === null
  }

  closing(counted: TokenUsage | null): Uint8Array {
    return utf8(this.#translator.closing(counted))
  }

  errorFrame(error: GatewayError, requestId: string, dialect: ErrorDialect): Uint8Array {
    return this.#errorFrame(error, requestId, dialect, this.#translator.sequence ?? 0)
  }

  #translate(events: readonly SseEvent[]): Uint8Array | null {
    let frames = ""
    for (const { event, data } of events) if (data !== null) frames += this.#translator.read(event, data)
    return frames === "" ? null : utf8(frames)
  }
}
