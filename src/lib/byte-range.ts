/** A part of a file: from `start` up to, not including, `end`. */
export interface ByteRange {
  readonly start: number
  readonly end: number
  /** False where all of the file is meant, because nobody asked for a part. */
  readonly isPartial: boolean
}

/** Positions up to what a number holds exactly. */
const pattern = /^bytes=(\d{0,15})-(\d{0,15})$/i

interface Positions {
  readonly first: number | null
  readonly last: number | null
}

/** What a `range` header says that asks for one part of a file; null for anything else, which is to be ignored. */
function positionsOf(header: string | null): Positions | null {
  const [, from = "", to = ""] = (header === null ? null : pattern.exec(header)) ?? []
  const first = from === "" ? null : Number(from)
  const last = to === "" ? null : Number(to)
  const isRange = first === null ? last !== null : last === null || first <= last
  return isRange ? { first, last } : null
}

export function isSingleRange(header: string): boolean {
  return positionsOf(header) !== null
}

/** The part of a file of `size` bytes that a header asks for; null where the file has no such part. */
export function rangeOf(header: string | null, size: number): ByteRange | null {
  const positions = positionsOf(header)
  if (positions === null) return { start: 0, end: size, isPartial: false }
  const { first, last } = positions
  // Without a first position it is the last so many bytes.
  const start = first ?? Math.max(0, size - (last ?? 0))
  const end = first === null || last === null ? size : Math.min(size, last + 1)
  return start < end ? { start, end, isPartial: true } : null
}
