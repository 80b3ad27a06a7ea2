import { joinBytes } from "./bytes.ts"
import type { Edit, Span } from "./json-bytes.ts"

/** Bytes that follow each other in several arrays, as a large body arrives: joining them would take its size in memory again. */
export class Pieces {
  readonly size: number
  readonly #pieces: readonly Uint8Array[]

  constructor(pieces: readonly Uint8Array[]) {
    this.#pieces = pieces
    this.size = pieces.reduce((sum, piece) => sum + piece.length, 0)
  }

  /** All of them in one array; a copy unless there is only one. */
  whole(): Uint8Array {
    return joinBytes(this.#pieces)
  }

  /** The bytes of a span in one array. */
  part({ start, end }: Span): Uint8Array {
    return joinBytes(this.#between(start, end))
  }

  /** Views on the bytes with some spans replaced; nothing is copied. Edits come sorted and must not overlap. */
  spliced(edits: readonly Edit[]): readonly Uint8Array[] {
    const parts: Uint8Array[] = []
    let read = 0
    for (const { at, put } of edits) {
      if (at.start < read || at.end < at.start || at.end > this.size)
        throw new RangeError(`the edit of bytes ${at.start} to ${at.end} does not fit`)
      parts.push(...this.#between(read, at.start), put)
      read = at.end
    }
    parts.push(...this.#between(read, this.size))
    return parts
  }

  #between(start: number, end: number): Uint8Array[] {
    const found: Uint8Array[] = []
    let at = 0
    for (const piece of this.#pieces) {
      const from = Math.max(start - at, 0)
      const to = Math.min(end - at, piece.length)
      if (from < to) found.push(from === 0 && to === piece.length ? piece : piece.subarray(from, to))
      at += piece.length
      if (at >= end) break
    }
    return found
  }
}
