import { isObject, type JsonObject, parseObject } from "../core/json.ts"
import { overlayMessagesUsage, readMessagesUsage } from "../core/messages-usage.ts"
import type { TokenUsage } from "../core/usage.ts"
import { argumentsText, chatUsage, completionIdentity, finishReason } from "./chat-to-messages-answer.ts"
import { messagesErrorToChat } from "./chat-to-messages-error.ts"
import { callIdFor } from "./chat-to-messages-ids.ts"
import { speaksOfFunctions } from "./chat-to-messages-tools.ts"
import type { StreamTranslator } from "./translator.ts"

type Fields = Readonly<Record<string, unknown>>

/** A call whose arguments may still come. */
interface OpenCall {
  /** Its place among the calls, which is not the block's place in the message. */
  readonly order: number
  /** Arguments that came with the block's start; they count only if none are streamed. */
  readonly input: unknown
  written: boolean
}

const noFields: Fields = {}
const pingFrame = ": ping\n\n"
const doneFrame = "data: [DONE]\n\n"

/** Turns the events of one messages stream into the chunks of a chat-completions stream. */
export class MessagesStreamToChat implements StreamTranslator {
  begun = false
  ended = false
  error: string | null = null
  progress = 0
  /** Stays null until the final output count: what `message_start` says of the output is no count to charge by. */
  usage: TokenUsage | null = null
  usageInvalid = false
  produced = ""

  readonly #asked: JsonObject
  readonly #legacy: boolean
  /** The JSON of what every chunk starts with, its brace left open; "" before the first. */
  #head = ""
  #told: Fields = noFields
  #finished = false
  #called = 0
  readonly #openCalls = new Map<unknown, OpenCall>()

  constructor(asked: JsonObject) {
    this.#asked = asked
    this.#legacy = speaksOfFunctions(asked)
  }

  get complete(): boolean {
    return this.#finished && this.error === null
  }

  read(event: string | null, data: string): string {
    if (this.ended || this.error !== null) return ""
    const body = parseObject(data)
    const type = typeof body?.type === "string" ? body.type : event
    if (type === "ping") return pingFrame
    if (type === "error" || (body?.error !== undefined && body.error !== null)) return this.#fail(data, body)
    if (body === null) return ""
    this.progress += 1
    return this.#readEvent(type, body)
  }

  closing(counted: TokenUsage | null): string {
    const usage = this.usage ?? counted
    const start = this.#start(noFields)
    const chunk = `data: ${this.#head},"choices":[],"usage":${JSON.stringify(usage === null ? null : chatUsage(usage))}}\n\n`
    return start + chunk + doneFrame
  }

  #readEvent(type: string | null, body: Fields): string {
    switch (type) {
      case "message_start":
        return this.#start(fieldsOf(body.message))
      case "content_block_start":
        return this.#finished ? "" : this.#openBlock(body.index, fieldsOf(body.content_block))
      case "content_block_delta":
        return this.#finished ? "" : this.#readDelta(body.index, fieldsOf(body.delta))
      case "content_block_stop":
        return this.#closeCall(body.index)
      case "message_delta":
        return this.#readMessageDelta(body)
      case "message_stop":
        this.ended = true
        // An upstream that forgot why it ended has ended all the same, if it said anything.
        return this.begun ? this.#finish(null) : ""
      default:
        return ""
    }
  }

  /** The role chunk, once; also for an upstream that forgot to start its message. */
  #start(message: Fields): string {
    if (this.#head !== "") return ""
    const { id, created, model } = completionIdentity(message, this.#asked)
    this.#head = JSON.stringify({ id, object: "chat.completion.chunk", created, model }).slice(0, -1)
    this.#told = fieldsOf(message.usage)
    return this.#chunk({ role: "assistant", content: "", refusal: null }, null)
  }

  #openBlock(index: unknown, block: Fields): string {
    const unanswered = this.#closeCall(index)
    switch (block.type) {
      case "text":
        return unanswered + this.#say("content", block.text)
      case "thinking":
        return unanswered + this.#say("reasoning_content", block.thinking)
      case "redacted_thinking":
        // Reasoning that cannot be read is a first token as well.
        this.begun = true
        return unanswered
      case "tool_use":
        return unanswered + this.#openCall(index, block)
      default:
        return unanswered
    }
  }

  #readDelta(index: unknown, delta: Fields): string {
    switch (delta.type) {
      case "text_delta":
        return this.#say("content", delta.text)
      case "thinking_delta":
        return this.#say("reasoning_content", delta.thinking)
      case "signature_delta":
        this.begun = true
        return ""
      case "input_json_delta": {
        const call = this.#openCalls.get(index)
        return call === undefined || typeof delta.partial_json !== "string" ? "" : this.#argue(call, delta.partial_json)
      }
      default:
        return ""
    }
  }

  #say(field: "content" | "reasoning_content", text: unknown): string {
    if (typeof text !== "string" || text === "") return ""
    return this.#produce(text, { [field]: text })
  }

  #openCall(index: unknown, { name, id, input }: Fields): string {
    if (typeof name !== "string" || name === "") return ""
    // The older form has room for one call.
    if (this.#legacy && this.#called > 0) return ""
    const order = this.#called++
    this.#openCalls.set(index, { order, input, written: false })
    if (this.#legacy) return this.#produce(name, { function_call: { name, arguments: "" } })
    const call = { index: order, id: callIdFor(id), type: "function", function: { name, arguments: "" } }
    return this.#produce(name, { tool_calls: [call] })
  }

  #argue(call: OpenCall, piece: string): string {
    if (piece === "") return ""
    call.written = true
    if (this.#legacy) return this.#produce(piece, { function_call: { arguments: piece } })
    return this.#produce(piece, { tool_calls: [{ index: call.order, function: { arguments: piece } }] })
  }

  /** A call that streamed no arguments gets those it came with, or an empty object, because callers parse them. */
  #closeCall(index: unknown): string {
    const call = this.#openCalls.get(index)
    if (call === undefined) return ""
    this.#openCalls.delete(index)
    return call.written ? "" : this.#argue(call, argumentsText(call.input))
  }

  #readMessageDelta({ delta, usage }: Fields): string {
    if (usage !== undefined && usage !== null) this.#readUsage(usage)
    const reason = fieldsOf(delta).stop_reason
    return typeof reason === "string" && reason.trim() !== "" ? this.#finish(reason) : ""
  }

  #readUsage(usage: unknown): void {
    this.#told = overlayMessagesUsage(this.#told, usage)
    const isFinal = !isObject(usage) || (usage.output_tokens !== undefined && usage.output_tokens !== null)
    if (!isFinal) return
    const reading = isObject(usage) ? readMessagesUsage(this.#told) : "invalid"
    this.usageInvalid = reading === "invalid"
    this.usage = reading === "invalid" ? null : reading
  }

  #finish(stopReason: string | null): string {
    if (this.#finished) return ""
    let frames = this.#start(noFields)
    for (const index of [...this.#openCalls.keys()]) frames += this.#closeCall(index)
    this.#finished = true
    this.begun = true
    return frames + this.#chunk({}, finishReason(stopReason, this.#called > 0, this.#legacy))
  }

  #fail(data: string, body: Fields | null): string {
    this.error = data
    this.progress += 1
    return `data: ${JSON.stringify(messagesErrorToChat(200, body ?? data).body)}\n\n`
  }

  #produce(text: string, delta: JsonObject): string {
    this.begun = true
    this.produced += text
    return this.#start(noFields) + this.#chunk(delta, null)
  }

  #chunk(delta: JsonObject, finish: string | null): string {
    const choice = { index: 0, delta, logprobs: null, finish_reason: finish }
    return `data: ${this.#head},"choices":[${JSON.stringify(choice)}]}\n\n`
  }
}

function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : noFields
}
