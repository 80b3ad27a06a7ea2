import type { ErrorDialect } from "../../core/endpoints.ts"
import { errorEnvelope } from "../../core/error-envelope.ts"
import type { GatewayError } from "../../core/errors.ts"
import { parseObject } from "../../core/json.ts"
import type { Measured } from "../../core/measured.ts"
import type { TokenUsage } from "../../core/usage.ts"
import { joinBytes, mebibyte, utf8 } from "../../lib/bytes.ts"
import type { SseEvent } from "../../lib/sse.ts"
import { type EventNote, isWholeObject, noteEvent } from "../meters/event-note.ts"
import { MediaCount } from "../meters/media-count.ts"
import { type Fate, ForwardingTap } from "./forwarding.ts"
import type { StreamState, StreamTap } from "./tap.ts"

/** A picture comes as one event, which is passed on only as a whole. */
const mostEventBytes = 64 * mebibyte

/**
 * Reads streams of images, speech and transcripts, whose events are typed `image_generation.partial_image`,
 * `transcript.text.delta` and the like. Every event passes unchanged; a closing one waits until it is known not to be the last.
 */
export class EventsTap extends ForwardingTap implements StreamTap {
  readonly countable = false
  begun = false
  error: string | null = null
  progress = 0
  /** The words of a transcript: pictures and sounds say nothing that could be counted. */
  produced = ""
  readonly wantsCount = false
  readonly #count = new MediaCount()
  #typed = false
  #closed = false

  constructor(maxEventBytes: number = mostEventBytes) {
    super(maxEventBytes)
  }

  get state(): StreamState {
    if (this.error !== null) return "error_sent"
    // Vendors that do not type their events end by closing; those that do must have sent a last one.
    return this.ended || this.#closed || !this.#typed ? "complete" : "open"
  }

  get lingering(): boolean {
    return this.#closed && !this.ended
  }

  get measured(): Partial<Measured> {
    return this.#count.measured
  }

  get usage(): TokenUsage | null {
    return this.measured.tokens ?? null
  }

  get usageInvalid(): boolean {
    return this.#count.invalid || this.overflowed
  }

  closing(): Uint8Array {
    return joinBytes([...(this.held ?? []), this.marker ?? new Uint8Array()])
  }

  errorFrame(error: GatewayError, requestId: string, dialect: ErrorDialect): Uint8Array {
    return utf8(`event: error\ndata: ${errorEnvelope(error, requestId, dialect)}\n\n`)
  }

  protected override isWhole(data: string): boolean {
    return data === "[DONE]" || isWholeObject(data)
  }

  protected override read(event: SseEvent, data: string): Fate {
    if (data === "[DONE]") return "end"
    const named = event.event === "message" ? null : event.event
    // A partial image is megabytes of base64: what matters stands at the beginning of such an event.
    const early = named ?? typeOf(data)
    if (early === "ping" || early === "keepalive") return this.held === null ? "forward" : "follow"
    this.progress += 1
    if (early?.startsWith("transcript.text.")) this.#hear(early, data)
    if (early !== null && isPartial(early)) return this.#readPartial(data)
    const note = noteEvent(data)
    const type = early ?? note?.type ?? null
    if (type === "error" || (note?.isError && !isOneFailure(type))) {
      this.error = data
      return "forward"
    }
    return this.#readMade(type, note)
  }

  #hear(type: string, data: string): void {
    const { delta, text } = parseObject(data) ?? {}
    if (type.endsWith(".delta") && typeof delta === "string") this.produced += delta
    // Some upstreams send no deltas, only what became of them.
    if (type.endsWith(".done") && this.produced === "" && typeof text === "string") this.produced = text
  }

  #readPartial(data: string): Fate {
    if (data.length < longestErrorEvent && isError(data)) this.error = data
    else {
      this.begun = true
      this.#typed = true
      // Another picture has been begun after one that was completed.
      this.#closed = false
    }
    return "forward"
  }

  #readMade(type: string | null, note: EventNote | null): Fate {
    this.begun = true
    if (type !== null) this.#typed = true
    if (note !== null) this.#count.add(type, note)
    if (type === null || !/\.(completed|done)$/.test(type)) return "forward"
    this.#closed = true
    return "wait"
  }
}

const longestErrorEvent = 16 * 1024

/** Something on the way to what is charged by. */
function isPartial(type: string): boolean {
  return /\.(partial_image|delta)$/.test(type)
}

/** One of several pictures could not be made; the others go on. */
function isOneFailure(type: string | null): boolean {
  return type?.endsWith(".partial_failed") ?? false
}

function isError(data: string): boolean {
  if (!data.includes('"error"')) return false
  const value = parseObject(data)
  return value !== null && value.error !== undefined && value.error !== null
}

function typeOf(data: string): string | null {
  return /^\s*\{\s*"type"\s*:\s*"([\w.-]{1,80})"/.exec(data)?.[1] ?? null
}
