import { joinBytes, utf8 } from "../../lib/bytes.ts"
import { defaultMaxEventBytes, type SseEvent, SseSplitter } from "../../lib/sse.ts"

const LF = 0x0a
const CR = 0x0d

/**
 * What is to become of an event's bytes: passed on, kept for the end, kept until another event shows that it was not the last,
 * kept behind what is kept already, left out, or the stream's own end marker.
 */
export type Fate = "forward" | "hold" | "wait" | "follow" | "drop" | "end"

/**
 * Passes a stream on byte for byte, event by event: a protocol reads each event and decides its fate. Only whole events are
 * passed on, so that an error of ours can always be put between two.
 */
export abstract class ForwardingTap {
  /** The upstream's own end marker was seen; whatever follows it is ignored. */
  ended = false

  readonly #splitter: SseSplitter
  #held: Uint8Array[] | null = null
  /** What is held goes on before the next event. */
  #waiting = false
  #marker: Uint8Array | null = null

  constructor(maxEventBytes: number = defaultMaxEventBytes) {
    this.#splitter = new SseSplitter(maxEventBytes)
  }

  push(chunk: Uint8Array): Uint8Array | null {
    if (this.ended) return null
    const { bytes, events, consumed } = this.#splitter.push(chunk)
    return this.#take(bytes, events, consumed)
  }

  end(): Uint8Array | null {
    if (this.ended) return null
    const { bytes, events } = this.#splitter.end()
    const last = events.at(-1)
    // A tail that was cut in mid-event must not reach the caller as if it were one.
    if (last === undefined || last.data === null || !this.isWhole(last.data)) return null
    const whole = joinBytes([bytes, utf8("\n\n")])
    return this.#take(whole, [{ ...last, end: whole.length }], whole.length)
  }

  protected get isBetweenEvents(): boolean {
    return this.#splitter.isBetweenEvents
  }

  /** An event was too long to be read and was passed on all the same. */
  protected get overflowed(): boolean {
    return this.#splitter.overflowed
  }

  /** Reads an event that carries data. */
  protected abstract read(event: SseEvent, data: string): Fate

  /** Whether the data of a last event without its blank line is all there. */
  protected abstract isWhole(data: string): boolean

  /** The event held for the end with whatever comments followed it, byte for byte. */
  protected get held(): readonly Uint8Array[] | null {
    return this.#held
  }

  protected dropHeld(): void {
    this.#held = null
    this.#waiting = false
  }

  /** The bytes of the end marker as the upstream wrote them. */
  protected get marker(): Uint8Array | null {
    return this.#marker
  }

  #take(bytes: Uint8Array, events: readonly SseEvent[], consumed: number): Uint8Array | null {
    let from = 0
    const parts: Uint8Array[] = []
    for (const event of events) {
      const fate = this.#fateOf(event)
      if (this.#waiting && fate !== "follow" && fate !== "end") parts.push(...this.#release())
      if (fate === "forward") continue
      if (event.start > from) this.#pass(bytes.subarray(from, event.start), parts)
      from = event.end
      const own = bytes.slice(event.start, event.end)
      if (fate === "end") {
        this.ended = true
        this.#marker = withLineFeed(own)
        return parts.length === 0 ? null : joinBytes(parts)
      }
      if (fate === "drop") continue
      if (fate === "follow") this.#held?.push(own)
      else this.#held = [own]
      this.#waiting ||= fate === "wait"
    }
    if (from < consumed) {
      const rest = from === 0 && consumed === bytes.length ? bytes : bytes.subarray(from, consumed)
      this.#pass(rest, parts)
    }
    return parts.length === 0 ? null : joinBytes(parts)
  }

  /** Line ends behind a held event, such as the second half of its last CRLF, must not overtake it. */
  #pass(bytes: Uint8Array, parts: Uint8Array[]): void {
    if (this.#held !== null && bytes.every(isLineEnd)) {
      this.#held.push(bytes.slice())
      return
    }
    if (this.#waiting) parts.push(...this.#release())
    parts.push(bytes)
  }

  #release(): readonly Uint8Array[] {
    const released = this.#held ?? []
    this.#held = null
    this.#waiting = false
    return released
  }

  #fateOf(event: SseEvent): Fate {
    if (event.data !== null) return this.read(event, event.data)
    // Comments after a held event stay behind it, so that an ordinary stream passes byte for byte.
    return this.#held === null ? "forward" : "follow"
  }
}

function isLineEnd(byte: number): boolean {
  return byte === LF || byte === CR
}

/** The end marker with its last CRLF whole: nothing behind the marker is read, so a LF still on its way is put here. */
function withLineFeed(marker: Uint8Array): Uint8Array {
  return marker.at(-1) === CR && marker.at(-2) === LF ? joinBytes([marker, Uint8Array.of(LF)]) : marker
}
