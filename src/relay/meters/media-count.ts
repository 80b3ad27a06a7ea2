import { type Measured, mostImages } from "../../core/measured.ts"
import { readMediaUsage, traits } from "../../core/media-usage.ts"
import { isTokenCount } from "../../core/token-count.ts"
import type { TokenUsage } from "../../core/usage.ts"
import type { EventNote } from "./event-note.ts"

/** Adds up what the events of a media stream say: each finished picture and its tokens, and the usage of speech and transcripts. */
export class MediaCount {
  #measured: Partial<Measured> = {}
  #invalid = false
  /** One vendor sends each picture as `*.partial_succeeded`, and `*.completed` without one at the end. */
  #sendsPicturesApart = false

  get measured(): Partial<Measured> {
    return this.#measured
  }

  get invalid(): boolean {
    return this.#invalid
  }

  /** Takes an event that is more than a sketch or a piece; `type` is null where the vendor does not type its events. */
  add(type: string | null, note: EventNote): void {
    if (note.doubtful) this.#invalid = true
    if (type?.endsWith(".partial_succeeded")) this.#sendsPicturesApart = true
    this.#addImages(this.#picturesIn(type, note), note)
    this.#addUsage(type, note.usage)
  }

  #picturesIn(type: string | null, note: EventNote): number {
    if (type === null) return note.hasPicture ? 1 : (note.entries ?? 0)
    if (type.endsWith(".partial_succeeded")) return note.hasPicture ? 1 : 0
    const isCompleted = /^image_\w+\.completed$/.test(type)
    return isCompleted && (note.hasPicture || !this.#sendsPicturesApart) ? 1 : 0
  }

  #addImages(made: number, { size, quality }: EventNote): void {
    if (made === 0) return
    const images = (this.#measured.images ?? 0) + made
    if (images > mostImages) this.#invalid = true
    else this.#measured = { ...this.#measured, ...traits(size, quality), images }
  }

  #addUsage(type: string | null, usage: unknown): void {
    const { measured, invalid } = readMediaUsage(usage)
    if (invalid) this.#invalid = true
    const earlier = this.#measured.tokens
    // Each picture has its own tokens; of all else the last word counts.
    if (earlier && measured.tokens && type?.startsWith("image_")) this.#addTokens(earlier, measured.tokens)
    else this.#measured = { ...this.#measured, ...measured }
  }

  #addTokens(earlier: TokenUsage, more: TokenUsage): void {
    const tokens = sum(earlier, more)
    if (Object.values(tokens).every(isTokenCount)) this.#measured = { ...this.#measured, tokens }
    else this.#invalid = true
  }
}

function sum(one: TokenUsage, other: TokenUsage): TokenUsage {
  return {
    input: one.input + other.input,
    cachedInput: one.cachedInput + other.cachedInput,
    cacheWrite: one.cacheWrite + other.cacheWrite,
    audioInput: one.audioInput + other.audioInput,
    output: one.output + other.output,
    reasoning: one.reasoning + other.reasoning,
    audioOutput: one.audioOutput + other.audioOutput,
  }
}
