import { errorEnvelope } from "../../core/error-envelope.ts"
import type { GatewayError } from "../../core/errors.ts"
import { isObject, parseObject } from "../../core/json.ts"
import { overlayMessagesUsage, readMessagesUsage } from "../../core/messages-usage.ts"
import type { TokenUsage } from "../../core/usage.ts"
import { utf8 } from "../../lib/bytes.ts"
import type { SseEvent } from "../../lib/sse.ts"
import { type Fate, ForwardingTap } from "./forwarding.ts"
import type { StreamState, StreamTap } from "./tap.ts"

type Fields = Readonly<Record<string, unknown>>

const noFields: Fields = {}
const stopFrame = utf8('event: message_stop\ndata: {"type":"message_stop"}\n\n')

/** Reads a messages stream. Every event passes unchanged; `message_stop` is its end marker. */
export class MessagesTap extends ForwardingTap implements StreamTap {
  readonly countable = true
  /** The usage stands in the upstream's own events: nothing is added to them. */
  readonly wantsCount = false
  begun = false
  error: string | null = null
  progress = 0
  usage: TokenUsage | null = null
  usageInvalid = false
  produced = ""
  #told: Fields = noFields
  #stopped = false

  get state(): StreamState {
    if (this.error !== null) return "error_sent"
    return this.ended || this.#stopped ? "complete" : "open"
  }

  closing(): Uint8Array {
    return this.marker ?? stopFrame
  }

  errorFrame(error: GatewayError, requestId: string): Uint8Array {
    return messagesErrorFrame(error, requestId)
  }

  protected override isWhole(data: string): boolean {
    return parseObject(data) !== null
  }

  protected override read(event: SseEvent, data: string): Fate {
    const body = parseObject(data)
    const type = typeof body?.type === "string" ? body.type : event.event
    if (type === "ping") return "forward"
    if (type === "error") {
      this.error = data
      this.progress += 1
      return "forward"
    }
    if (body === null) return "forward"
    this.progress += 1
    switch (type) {
      case "message_start":
        this.#told = fieldsOf(fieldsOf(body.message).usage)
        return "forward"
      case "content_block_start":
        return this.#readStart(fieldsOf(body.content_block))
      case "content_block_delta":
        return this.#readDelta(fieldsOf(body.delta))
      case "message_delta":
        return this.#readMessageDelta(body)
      case "message_stop":
        return "end"
      default:
        return "forward"
    }
  }

  /** A block that begins with something, or is a call or another thing that has no deltas, is a first token. */
  #readStart({ type, text, thinking, name }: Fields): Fate {
    if (type === "text") this.#produce(text)
    else if (type === "thinking") this.#produce(thinking)
    else {
      this.begun = true
      this.#produce(name)
    }
    return "forward"
  }

  #readDelta({ text, thinking, partial_json: json }: Fields): Fate {
    this.begun = true
    this.#produce(text ?? thinking ?? json)
    return "forward"
  }

  #readMessageDelta({ delta, usage }: Fields): Fate {
    if (usage !== undefined && usage !== null) this.#readUsage(usage)
    if (typeof fieldsOf(delta).stop_reason === "string") {
      this.begun = true
      this.#stopped = true
    }
    return "forward"
  }

  /** What `message_start` says of the output is no count to charge by: it is final when the output is told again. */
  #readUsage(usage: unknown): void {
    this.#told = overlayMessagesUsage(this.#told, usage)
    const reading = isObject(usage) ? readMessagesUsage(this.#told) : "invalid"
    this.usageInvalid = reading === "invalid"
    this.usage = reading === "invalid" ? null : reading
  }

  #produce(text: unknown): void {
    if (typeof text !== "string" || text === "") return
    this.begun = true
    this.produced += text
  }
}

/** An error in mid-stream as messages clients understand it. */
export function messagesErrorFrame(error: GatewayError, requestId: string): Uint8Array {
  return utf8(`event: error\ndata: ${errorEnvelope(error, requestId, "messages")}\n\n`)
}

function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : noFields
}
