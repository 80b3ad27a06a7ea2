import { GatewayError } from "../core/errors.ts"
import { isObject, type JsonObject, parseObject } from "../core/json.ts"
import { writeResponsesUsage } from "../core/responses-usage.ts"
import { readChatUsage, type TokenUsage } from "../core/usage.ts"
import type { Field } from "./fields.ts"
import { type ChatPieces, producedText, readPieces } from "./responses-chat-pieces.ts"
import { listOf, mintId, textOf } from "./responses-fields.ts"
import { ResponseFrames } from "./responses-frames.ts"
import { OutputItems } from "./responses-items.ts"
import { earlierCallIds, nowInSeconds, type ResponseState, responseObject, toolNames } from "./responses-shape.ts"
import type { StreamTranslator } from "./translator.ts"

/** Finish reasons of an answer that was cut off, and how a response calls that; vendors' own words included. */
const cutOff: Readonly<Record<string, "max_output_tokens" | "content_filter">> = {
  length: "max_output_tokens",
  max_tokens: "max_output_tokens",
  model_length: "max_output_tokens",
  model_context_window_exceeded: "max_output_tokens",
  content_filter: "content_filter",
  sensitive: "content_filter",
}

/** Finish reasons by which some vendors say that they broke down. */
const breakdowns: ReadonlySet<string> = new Set(["error", "insufficient_system_resource", "network_error"])

/** Makes the events of a Responses stream out of the chunks of a chat completion. */
export class ChatToResponsesStream implements StreamTranslator {
  begun = false
  ended = false
  error: string | null = null
  progress = 0
  usage: TokenUsage | null = null
  usageInvalid = false
  produced = ""

  readonly #asked: JsonObject
  readonly #frames = new ResponseFrames()
  readonly #items: OutputItems
  readonly #id = mintId("resp")
  #createdAt: number | null = null
  #serviceTier: string | null = null
  #isCreated = false
  #finishReason: string | null = null

  constructor(asked: JsonObject) {
    this.#asked = asked
    this.#items = new OutputItems(this.#frames, toolNames(asked), earlierCallIds(asked))
  }

  get sequence(): number {
    return this.#frames.next
  }

  get complete(): boolean {
    return this.error === null && (this.ended || this.#finishReason !== null)
  }

  read(event: string | null, data: string): string {
    if (this.ended || this.error !== null) return ""
    if (data.trim() === "[DONE]") {
      this.ended = true
      return ""
    }
    const chunk = parseObject(data) as JsonObject | null
    if (event === "error") return this.#break(data, chunk?.error ?? chunk)
    if (chunk === null) return ""
    if (chunk.error !== undefined && chunk.error !== null) return this.#break(data, chunk.error)
    const breakdown = this.readChunk(chunk)
    if (breakdown !== null) return this.#break(data, breakdown)
    return this.#frames.take()
  }

  /** Takes a chunk, or a whole answer, in; returns the vendor's words when it says that it broke down. */
  readChunk(chunk: JsonObject): JsonObject | null {
    this.#identify(chunk)
    const reading = readChatUsage(chunk.usage)
    if (reading !== null) {
      this.usageInvalid = reading === "invalid"
      this.usage = reading === "invalid" ? null : reading
    }
    const choices = listOf(chunk.choices)
    if (reading !== null || choices.length > 0) this.progress += 1
    const choice = choices.find((each) => isObject(each) && (each.index ?? 0) === 0)
    // What comes after the finish is a repetition, the usage aside.
    if (!isObject(choice) || this.#finishReason !== null) return null
    const pieces = readPieces(choice)
    if (pieces !== null) this.#add(pieces)
    const finish = textOf(choice.finish_reason).trim()
    if (breakdowns.has(finish)) return isObject(choice.error) ? choice.error : { code: finish }
    if (finish !== "" && finish !== "null") this.#finish(finish)
    return null
  }

  closing(counted: TokenUsage | null): string {
    if (this.error !== null) return ""
    const response = this.result(counted)
    this.#frames.event(`response.${response.status}`, { response })
    return this.#frames.take()
  }

  /** The whole response of a successful stream. */
  result(counted: TokenUsage | null): JsonObject {
    this.#announce()
    if (this.#finishReason === null) this.#items.finish(false)
    const incompleteReason = cutOff[this.#finishReason ?? ""] ?? null
    const status = incompleteReason === null ? "completed" : "incomplete"
    return this.#response({ status, incompleteReason }, this.usage ?? counted)
  }

  /** The last frames of a stream that failed, with what was delivered until then. */
  failing(code: string, message: string): string {
    this.#announce()
    const response = this.#response({ status: "failed", error: { code, message } }, this.usage)
    this.#frames.event("response.failed", { response })
    return this.#frames.take()
  }

  #identify(chunk: JsonObject): void {
    if (typeof chunk.created === "number" && chunk.created > 0) this.#createdAt ??= Math.floor(chunk.created)
    if (typeof chunk.service_tier === "string") this.#serviceTier = chunk.service_tier
  }

  #add(pieces: ChatPieces): void {
    const produced = producedText(pieces)
    if (produced === "" && pieces.calls.length === 0) return
    this.produced += produced
    this.begun = true
    this.#announce()
    this.#items.addText("summary_text", pieces.reasoning)
    this.#items.addText("output_text", pieces.text, pieces.logprobs)
    this.#items.addText("refusal", pieces.refusal)
    for (const call of pieces.calls) this.#items.addCall(call)
    this.#items.deliver()
  }

  #finish(reason: string): void {
    this.begun = true
    this.#announce()
    this.#finishReason = reason
    this.#items.finish(Object.hasOwn(cutOff, reason))
  }

  /** Waits for the first token, so that an upstream that gives none leaves no trace. */
  #announce(): void {
    if (this.#isCreated) return
    this.#isCreated = true
    const response = this.#response({ status: "in_progress", output: [] }, null)
    this.#frames.event("response.created", { response })
    this.#frames.event("response.in_progress", { response })
  }

  #break(data: string, reported: Field): string {
    this.error = data
    this.progress += 1
    const { code, message } = describe(reported)
    return this.failing(code, message)
  }

  #response(state: Partial<ResponseState>, usage: TokenUsage | null): JsonObject {
    this.#createdAt ??= nowInSeconds()
    return responseObject(this.#asked, {
      id: this.#id,
      createdAt: this.#createdAt,
      serviceTier: this.#serviceTier,
      status: "in_progress",
      output: this.#items.list(),
      usage: usage === null ? null : writeResponsesUsage(usage),
      incompleteReason: null,
      error: null,
      ...state,
    })
  }
}

/** The Responses object for a whole chat completion. */
export function wholeResponse(answered: JsonObject, asked: JsonObject): JsonObject {
  const reading = new ChatToResponsesStream(asked)
  if (!listOf(answered.choices).some(isObject)) {
    throw new GatewayError("upstream_invalid_response", "the upstream's answer has no choices")
  }
  const breakdown = reading.readChunk(answered)
  if (breakdown !== null) throw new GatewayError("upstream_error", describe(breakdown).message)
  return reading.result(null)
}

/** An upstream's error, in whatever form, as a response tells it. */
function describe(reported: Field): { code: string; message: string } {
  const { code, type, message } = isObject(reported) ? reported : {}
  const word = textOf(code) || textOf(type) || (code === 429 ? "rate_limit_exceeded" : "server_error")
  const text = textOf(message) || textOf(reported)
  return { code: word, message: text || `the upstream ended its answer with an error (${word})` }
}
