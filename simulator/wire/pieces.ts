import type { Piece } from "./reply.ts"

/** Enough for a reader on loopback to see two writes as two reads. */
export const splitGapMs = 1

export interface Splitting {
  /** Byte offsets at which a new piece starts. */
  readonly splitAt?: readonly number[]
  /** Length of each piece in bytes. */
  readonly splitEvery?: number
  readonly gapMs?: number
}

export type TextEncoding = "utf8" | "latin1" | "base64"

/** Cuts bytes where told; the pieces are written apart. */
export function* split(bytes: Uint8Array, how: Splitting): Generator<Piece> {
  const afterMs = how.gapMs ?? splitGapMs
  let start = 0
  for (const end of cuts(bytes.length, how)) {
    const piece = bytes.subarray(start, end)
    yield start === 0 ? { bytes: piece } : { bytes: piece, afterMs }
    start = end
  }
}

/** Ends of the pieces, ascending and each once; the last is the length. */
function cuts(length: number, how: Splitting): number[] {
  const ends = new Set<number>(how.splitAt)
  const every = how.splitEvery ?? length
  for (let end = every; end < length; end += every) ends.add(end)
  ends.add(length)
  return [...ends].filter((end) => end > 0 && end <= length).sort((a, b) => a - b)
}
