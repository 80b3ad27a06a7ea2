import { isObject, type JsonObject, parseObject } from "../core/json.ts"
import { readChatUsage, type TokenUsage } from "../core/usage.ts"
import type { Field } from "./fields.ts"
import { MessageFrames } from "./messages-frames.ts"
import { MessageBlocks } from "./messages-to-chat-blocks.ts"
import { chatErrorToMessages } from "./messages-to-chat-error.ts"
import { finishReasonOf, isBreakdown, messagesUsage, mintMessageId, stopReasonOf } from "./messages-to-chat-parts.ts"
import { type ChatPieces, producedText, readPieces } from "./responses-chat-pieces.ts"
import { listOf, textOf } from "./responses-fields.ts"
import type { StreamTranslator } from "./translator.ts"

/** Makes the events of a messages stream out of the chunks of a chat completion. */
export class ChatStreamToMessages implements StreamTranslator {
  begun = false
  ended = false
  error: string | null = null
  progress = 0
  usage: TokenUsage | null = null
  usageInvalid = false
  produced = ""

  readonly #asked: JsonObject
  readonly #frames = new MessageFrames()
  readonly #blocks: MessageBlocks
  #isStarted = false
  #isRefused = false
  #finishReason: string | null = null
  #matchedStop: unknown = null

  constructor(asked: JsonObject) {
    this.#asked = asked
    this.#blocks = new MessageBlocks(this.#frames, asked)
  }

  get complete(): boolean {
    return this.error === null && (this.ended || this.#finishReason !== null)
  }

  read(event: string | null, data: string): string {
    if (this.ended || this.error !== null) return ""
    const chunk = parseObject(data) as JsonObject | null
    if (chunk === null && data.trim() === "[DONE]") {
      this.ended = true
      return ""
    }
    if (event === "error" || (chunk?.error !== undefined && chunk.error !== null)) this.#fail(data, chunk ?? data)
    else if (chunk !== null) this.#readChunk(chunk, data)
    return this.#frames.take()
  }

  closing(counted: TokenUsage | null): string {
    if (this.error !== null) return ""
    this.#start()
    this.#blocks.finish()
    const stop = stopReasonOf({
      finishReason: this.#finishReason,
      refused: this.#isRefused,
      toolBlocks: this.#blocks.toolBlocks,
      matchedStop: this.#matchedStop,
      stopSequences: this.#asked.stop_sequences,
    })
    this.#frames.messageEnd(stop, messagesUsage(this.usage ?? counted))
    return this.#frames.take()
  }

  #readChunk(chunk: JsonObject, data: string): void {
    const reading = readChatUsage(chunk.usage)
    if (reading !== null) {
      this.usageInvalid = reading === "invalid"
      this.usage = reading === "invalid" ? null : reading
    }
    const choices = listOf(chunk.choices)
    if (reading !== null || choices.length > 0) this.progress += 1
    const choice = choices.find((each) => isObject(each) && (each.index ?? 0) === 0)
    // What comes after the finish is a repetition, the usage aside.
    if (isObject(choice) && this.#finishReason === null) this.#readChoice(choice as JsonObject, data)
  }

  #readChoice(choice: JsonObject, data: string): void {
    const text = onlyText(choice.delta)
    if (text === null) this.#add(readPieces(choice))
    else if (text !== "") this.#say(text)
    const finishReason = finishReasonOf(choice.finish_reason)
    if (isBreakdown(finishReason)) this.#fail(data, { error: choice.error ?? breakdown(finishReason) })
    else if (finishReason !== null) this.#finish(finishReason, choice)
  }

  #say(text: string): void {
    this.produced += text
    this.#start()
    this.#blocks.addText("text", text)
    this.#blocks.deliver()
  }

  #add(pieces: ChatPieces | null): void {
    const produced = pieces === null ? "" : producedText(pieces)
    if (pieces === null || (produced === "" && pieces.calls.length === 0)) return
    this.produced += produced
    this.#start()
    this.#blocks.addText("thinking", pieces.reasoning)
    this.#blocks.addText("text", pieces.text)
    this.#blocks.addText("refusal", pieces.refusal)
    this.#isRefused ||= pieces.refusal !== ""
    for (const call of pieces.calls) this.#blocks.addCall(call)
    this.#blocks.deliver()
  }

  #finish(reason: string, choice: JsonObject): void {
    this.#start()
    this.#finishReason = reason
    this.#matchedStop = choice.stop_reason ?? choice.matched_stop
    this.#blocks.finish()
  }

  /** Waits for the first token, so that an upstream that gives none leaves no trace. */
  #start(): void {
    this.begun = true
    if (this.#isStarted) return
    this.#isStarted = true
    this.#frames.messageStart({ id: mintMessageId(), model: textOf(this.#asked.model) })
  }

  #fail(data: string, told: unknown): void {
    this.error = data
    this.progress += 1
    this.#frames.error(chatErrorToMessages(200, told).body)
  }
}

function breakdown(code: string | null): JsonObject {
  return { code, message: `the upstream ended its answer with an error (${code})` }
}

/** The text of a delta that says nothing else, as nearly all are; null where there is more to read. */
function onlyText(delta: Field): string | null {
  if (!isObject(delta) || typeof delta.content !== "string") return null
  const says = delta.tool_calls || delta.reasoning_content || delta.reasoning || delta.refusal || delta.function_call
  return says ? null : delta.content
}
