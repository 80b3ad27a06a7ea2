import { joinBytes, utf8 } from "../../lib/bytes.ts"
import { type SseEvent, SseSplitter } from "../../lib/sse.ts"

const LF = 0x0a
const CR = 0x0d

/** What is to become of an event's bytes: passed on, kept for the end, left out, or the stream's own end marker. */
export type Fate = "forward" | "hold" | "drop" | "end"

/**
 * Passes a stream on byte for byte, event by event: a protocol reads each event and decides its fate. Only whole events are
 * passed on, so that an error of ours can always be put between two.
 */
export abstract class ForwardingTap {
  /** The upstream's own end marker was seen; whatever follows it is ignored. */
  ended = false

  readonly #splitter = new SseSplitter()
  #held: Uint8Array[] | null = null
  #marker: Uint8Array | null = null

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
      if (fate === "forward") continue
      if (event.start > from) parts.push(bytes.subarray(from, event.start))
      from = event.end
      const own = bytes.slice(event.start, event.end)
      if (fate === "end") {
        this.ended = true
        this.#marker = withLineFeed(own)
        return parts.length === 0 ? null : joinBytes(parts)
      }
      if (fate === "drop") continue
      if (event.data !== null) this.#held = [own]
      else this.#held?.push(own)
    }
    if (from < consumed) {
      const rest = from === 0 && consumed === bytes.length ? bytes : bytes.subarray(from, consumed)
      // Line ends behind a held event, such as the second half of its last CRLF, must not overtake it.
      if (this.#held !== null && rest.every(isLineEnd)) this.#held.push(rest.slice())
      else parts.push(rest)
    }
    return parts.length === 0 ? null : joinBytes(parts)
  }

  #fateOf(event: SseEvent): Fate {
    if (event.data !== null) return this.read(event, event.data)
    // Comments after a held event stay behind it, so that an ordinary stream passes byte for byte.
    return this.#held === null ? "forward" : "hold"
  }
}

function isLineEnd(byte: number): boolean {
  return byte === LF || byte === CR
}

/** The end marker with its last CRLF whole: nothing behind the marker is read, so a LF still on its way is put here. */
function withLineFeed(marker: Uint8Array): Uint8Array {
  return marker.at(-1) === CR && marker.at(-2) === LF ? joinBytes([marker, Uint8Array.of(LF)]) : marker
}
