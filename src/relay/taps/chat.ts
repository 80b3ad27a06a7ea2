import { chatText } from "../../billing/produced.ts"
import type { ErrorDialect } from "../../core/endpoints.ts"
import { errorEnvelope } from "../../core/error-envelope.ts"
import type { GatewayError } from "../../core/errors.ts"
import { isObject, parseObject } from "../../core/json.ts"
import { readChatUsage, type TokenUsage, type UsageReading } from "../../core/usage.ts"
import { joinBytes, utf8 } from "../../lib/bytes.ts"
import type { SseEvent } from "../../lib/sse.ts"
import { type Fate, ForwardingTap } from "./forwarding.ts"
import { Repetition } from "./repetition.ts"
import type { StreamState, StreamTap } from "./tap.ts"

const doneFrame = utf8("data: [DONE]\n\n")

/**
 * Reads a chat-completions stream. Bytes pass unchanged; only the usage chunk is held until the end, so that exactly
 * one is delivered, directly before `[DONE]`.
 */
export class ChatTap extends ForwardingTap implements StreamTap {
  readonly countable = true
  begun = false
  error: string | null = null
  progress = 0
  usage: TokenUsage | null = null
  usageInvalid = false
  produced = ""

  readonly #openChoices = new Set<number>()
  readonly #finishedChoices = new Set<number>()
  readonly #repetition = new Repetition()
  /** What the last event said, where that was all it said. */
  #plainText: string | null = null
  #rawUsage: unknown = null
  #identity: { id: string; created: unknown; model: unknown; systemFingerprint: unknown } | null = null

  /** Most chunks repeat the one before them but for their text; those need no parsing. */
  override push(chunk: Uint8Array): Uint8Array | null {
    const alone = this.held === null && this.isBetweenEvents && !this.ended
    const text = alone ? this.#repetition.textOf(chunk) : null
    if (text !== null) {
      this.produced += text
      this.progress += 1
      return chunk
    }
    this.#plainText = null
    const before = this.progress
    const passed = super.push(chunk)
    // Only a chunk that was exactly one such event says what the next ones look like.
    const isOneEvent = alone && passed === chunk && this.progress === before + 1 && this.isBetweenEvents
    if (isOneEvent && this.#plainText !== null) this.#repetition.learn(chunk, '"content":"', this.#plainText)
    return passed
  }

  get state(): StreamState {
    if (this.error !== null) return "error_sent"
    const finished = this.#finishedChoices.size > 0 && this.#openChoices.size === 0
    return this.ended || finished ? "complete" : "open"
  }

  get wantsCount(): boolean {
    return this.usage === null
  }

  closing(counted: TokenUsage | null): Uint8Array {
    const done = this.marker ?? doneFrame
    if (this.held !== null) return joinBytes([...this.held, done])
    const usage = this.#rawUsage ?? (counted === null ? null : chatUsage(counted))
    const chunk = {
      id: this.#identity?.id ?? "",
      object: "chat.completion.chunk",
      created: this.#identity?.created ?? 0,
      model: this.#identity?.model ?? "",
      ...(this.#identity?.systemFingerprint === undefined
        ? {}
        : { system_fingerprint: this.#identity.systemFingerprint }),
      choices: [],
      usage,
    }
    return joinBytes([utf8(`data: ${JSON.stringify(chunk)}\n\n`), done])
  }

  errorFrame(error: GatewayError, requestId: string, dialect: ErrorDialect): Uint8Array {
    return chatErrorFrame(error, requestId, dialect)
  }

  protected override isWhole(data: string): boolean {
    return data === "[DONE]" || parseObject(data) !== null
  }

  protected override read(event: SseEvent, data: string): Fate {
    if (data === "[DONE]") return "end"
    const chunk = parseObject(data)
    if (event.event === "error" || (chunk?.error !== undefined && chunk.error !== null)) {
      this.error = data
      this.progress += 1
      return "forward"
    }
    if (chunk === null) return "forward"
    this.#identify(chunk)
    const usage = readChatUsage(chunk.usage)
    if (usage !== null) this.#takeUsage(usage, chunk.usage)
    const choices = Array.isArray(chunk.choices) ? chunk.choices : []
    if (choices.length === 0) return this.#readWithoutChoices(chunk, usage)
    this.progress += 1
    // A later usage is the one that counts, so the chunk held for the end no longer tells the truth.
    if (usage !== null) this.dropHeld()
    for (const choice of choices) this.#readChoice(choice)
    this.#plainText = usage === null && choices.length === 1 ? plainText(choices[0]) : null
    return "forward"
  }

  /** The last word counts; one that cannot be charged by gives way to the counted usage. */
  #takeUsage(usage: TokenUsage | "invalid", raw: unknown): void {
    this.usageInvalid = usage === "invalid"
    this.usage = usage === "invalid" ? null : usage
    this.#rawUsage = usage === "invalid" ? null : raw
    if (usage === "invalid") this.dropHeld()
  }

  /** A chunk with no choices is the usage chunk, or preamble such as a vendor's filter results. */
  #readWithoutChoices(chunk: Record<string, unknown>, usage: UsageReading): Fate {
    if (usage === null) return "forward"
    // Told to the caller as well it would be a second usage beside the counted one.
    if (usage === "invalid") return "drop"
    this.progress += 1
    if (Array.isArray(chunk.choices) && chunk.id === this.#identity?.id) return "hold"
    // Clients stumble over a usage chunk without choices or with a foreign id: ours takes its place at the end.
    this.dropHeld()
    return "drop"
  }

  #identify(chunk: Record<string, unknown>): void {
    if (this.#identity !== null || typeof chunk.id !== "string" || chunk.id === "") return
    this.#identity = {
      id: chunk.id,
      created: chunk.created,
      model: chunk.model,
      systemFingerprint: chunk.system_fingerprint,
    }
  }

  #readChoice(choice: unknown): void {
    if (!isObject(choice)) return
    const index = typeof choice.index === "number" ? choice.index : 0
    if (typeof choice.finish_reason === "string" && choice.finish_reason !== "") {
      this.begun = true
      this.#finishedChoices.add(index)
      this.#openChoices.delete(index)
    } else if (!this.#finishedChoices.has(index)) {
      this.#openChoices.add(index)
    }
    const text = isObject(choice.delta) ? deltaText(choice.delta) : null
    if (text === null) return
    this.begun = true
    this.produced += text
  }
}

/** An error in mid-stream as chat clients understand it. */
export function chatErrorFrame(error: GatewayError, requestId: string, dialect: ErrorDialect): Uint8Array {
  return utf8(`data: ${errorEnvelope(error, requestId, dialect)}\n\n`)
}

/** The content of a choice that carries nothing else that matters; null where it does. */
function plainText(choice: unknown): string | null {
  if (!isObject(choice) || !isObject(choice.delta)) return null
  if (choice.finish_reason !== null && choice.finish_reason !== undefined) return null
  const { content, role: _role, ...others } = choice.delta
  const alone = Object.values(others).every((value) => value === null)
  return alone && typeof content === "string" && content !== "" ? content : null
}

/** What a delta adds to the answer; null when it carries nothing of it, like the role-only first chunk. */
function deltaText(delta: Record<string, unknown>): string | null {
  const text = chatText(delta)
  if (text !== "") return text
  const isCall = (Array.isArray(delta.tool_calls) && delta.tool_calls.length > 0) || isObject(delta.function_call)
  return isCall || isObject(delta.audio) ? "" : null
}

function chatUsage(usage: TokenUsage): Record<string, number> {
  return { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: usage.input + usage.output }
}
