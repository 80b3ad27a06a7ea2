import { calledName, producedBy } from "../../billing/produced.ts"
import type { GatewayError } from "../../core/errors.ts"
import { isObject, parseObject } from "../../core/json.ts"
import { readResponsesUsage } from "../../core/responses-usage.ts"
import type { TokenUsage } from "../../core/usage.ts"
import { utf8 } from "../../lib/bytes.ts"

import type { SseEvent } from "../../lib/sse.ts"
import { type Fate, ForwardingTap } from "./forwarding.ts"
import type { StreamState, StreamTap } from "./tap.ts"

const finalTypes: ReadonlySet<string> = new Set(["response.completed", "response.incomplete", "response.failed"])

/** Deltas of what the model itself writes; others bring sounds, transcripts of them, or what a vendor's own tool made. */
const producedTypes: ReadonlySet<string> = new Set([
  "response.output_text.delta",
  "response.refusal.delta",
  "response.reasoning_text.delta",
  "response.reasoning_summary_text.delta",
  "response.function_call_arguments.delta",
  "response.custom_tool_call_input.delta",
  "response.mcp_call_arguments.delta",
])

/** Reads a stream of the responses API. Every event passes unchanged; the final one is its end marker. */
export class ResponsesTap extends ForwardingTap implements StreamTap {
  readonly countable = true
  begun = false
  error: string | null = null
  progress = 0
  usage: TokenUsage | null = null
  usageInvalid = false
  produced = ""
  /** The usage stands in the final event, which is the upstream's own: nothing is added to it. */
  readonly wantsCount = false
  failed = false
  #sequence = -1

  get state(): StreamState {
    if (this.error !== null) return "error_sent"
    return this.ended ? "complete" : "open"
  }

  closing(): Uint8Array {
    return this.marker ?? new Uint8Array()
  }

  errorFrame(error: GatewayError, requestId: string): Uint8Array {
    return responsesErrorFrame(error, requestId, this.#sequence + 1)
  }

  protected override isWhole(data: string): boolean {
    return parseObject(data) !== null
  }

  protected override read(event: SseEvent, data: string): Fate {
    const value = parseObject(data)
    if (value === null) return data === "[DONE]" ? "drop" : "forward"
    const type = typeof value.type === "string" ? value.type : (event.event ?? "")
    if (typeof value.sequence_number === "number") this.#sequence = value.sequence_number
    if (type === "keepalive" || type === "ping") return "forward"
    this.progress += 1
    if (type === "error" || event.event === "error") {
      this.error = data
      return "forward"
    }
    if (finalTypes.has(type)) return this.#readFinal(value)
    if (type.endsWith(".delta")) this.#readDelta(value.delta, producedTypes.has(type))
    else if (type === "response.output_item.added") this.produced += calledName(value.item)
    else if (type.endsWith(".done")) this.begun = true
    return "forward"
  }

  #readFinal(value: Record<string, unknown>): Fate {
    this.begun = true
    this.failed = value.type === "response.failed"
    const response = isObject(value.response) ? value.response : {}
    // Some upstreams send no deltas, only what became of them.
    if (this.produced === "") this.produced = producedBy("responses", response)
    const usage = readResponsesUsage(response.usage)
    this.usageInvalid = usage === "invalid"
    this.usage = usage === "invalid" ? null : usage
    return "end"
  }

  #readDelta(delta: unknown, isProduced: boolean): void {
    if (typeof delta !== "string") {
      this.begun = true
      return
    }
    if (delta === "") return
    this.begun = true
    if (isProduced) this.produced += delta
  }
}

export function responsesErrorFrame(error: GatewayError, requestId: string, sequence: number): Uint8Array {
  const event = {
    type: "error",
    code: error.code,
    message: error.message,
    param: null,
    sequence_number: sequence,
    request_id: requestId,
  }
  return utf8(`event: error\ndata: ${JSON.stringify(event)}\n\n`)
}
