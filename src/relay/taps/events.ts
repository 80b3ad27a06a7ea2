import type { ErrorDialect } from "../../core/endpoints.ts"
import { errorEnvelope } from "../../core/error-envelope.ts"
import type { GatewayError } from "../../core/errors.ts"
import { parseObject } from "../../core/json.ts"
import type { TokenUsage } from "../../core/usage.ts"
import { utf8 } from "../../lib/bytes.ts"

import type { SseEvent } from "../../lib/sse.ts"
import { type Fate, ForwardingTap } from "./forwarding.ts"
import type { StreamState, StreamTap } from "./tap.ts"

/**
 * Reads streams of images, speech and transcripts, whose events are typed `image_generation.partial_image`,
 * `transcript.text.delta` and the like. Every event passes unchanged.
 */
export class EventsTap extends ForwardingTap implements StreamTap {
  readonly countable = false
  begun = false
  error: string | null = null
  progress = 0
  readonly usage: TokenUsage | null = null
  readonly produced = ""
  readonly wantsCount = false
  #typed = false
  #closed = false

  get state(): StreamState {
    if (this.error !== null) return "error_sent"
    // Vendors that do not type their events end by closing; those that do must have sent a last one.
    return this.ended || this.#closed || !this.#typed ? "complete" : "open"
  }

  closing(): Uint8Array {
    return this.marker ?? new Uint8Array()
  }

  errorFrame(error: GatewayError, requestId: string, dialect: ErrorDialect): Uint8Array {
    return utf8(`event: error\ndata: ${errorEnvelope(error, requestId, dialect)}\n\n`)
  }

  protected override isWhole(data: string): boolean {
    return data === "[DONE]" || parseObject(data) !== null
  }

  protected override read(event: SseEvent, data: string): Fate {
    if (data === "[DONE]") return "end"
    // A partial image is megabytes of base64: what matters stands at the beginning of such an event.
    const type = event.event ?? typeOf(data)
    if (type === "ping" || type === "keepalive") return "forward"
    this.progress += 1
    if (type === "error" || (data.length < longestErrorEvent && isError(data))) {
      this.error = data
      return "forward"
    }
    this.begun = true
    if (type !== null) this.#typed = true
    if (type !== null && /\.(completed|done)$/.test(type)) this.#closed = true
    return "forward"
  }
}

const longestErrorEvent = 16 * 1024

function isError(data: string): boolean {
  const value = parseObject(data)
  return value !== null && value.error !== undefined && value.error !== null
}

function typeOf(data: string): string | null {
  return /^\s*\{\s*"type"\s*:\s*"([\w.-]{1,80})"/.exec(data)?.[1] ?? null
}
