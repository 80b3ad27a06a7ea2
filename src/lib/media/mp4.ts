import { has, hasText, uint64 } from "./reading.ts"

/** Boxes on one level: fragmented files have many, but their `moov` comes first. */
const mostBoxes = 10_000

/** MP4 and M4A: the duration in `moov/mvhd`, wherever `moov` stands. */
export function mp4Duration(view: DataView): number | null {
  const moov = findBox(view, "moov", { start: 0, end: view.byteLength })
  const header = moov === null ? null : findBox(view, "mvhd", moov)
  return header === null ? null : readHeader(view, header.start)
}

/** The content of a box. */
interface Content {
  readonly start: number
  readonly end: number
}

function findBox(view: DataView, type: string, within: Content): Content | null {
  let at = within.start
  for (let boxes = 0; boxes < mostBoxes && at + 8 <= within.end; boxes++) {
    const short = view.getUint32(at)
    // 1: the size follows in 64 bits; 0: the box goes on to the end.
    const isLong = short === 1
    if (isLong && !has(view, at, 16)) return null
    const size = isLong ? uint64(view, at + 8) : short === 0 ? within.end - at : short
    const start = at + (isLong ? 16 : 8)
    const end = at + size
    if (end < start) return null
    if (hasText(view, at + 4, type)) return { start, end: Math.min(end, within.end) }
    at = end
  }
  return null
}

function readHeader(view: DataView, at: number): number | null {
  if (!has(view, at, 32)) return null
  const isLong = view.getUint8(at) === 1
  const scale = view.getUint32(at + (isLong ? 20 : 12))
  const duration = isLong ? uint64(view, at + 24) : view.getUint32(at + 16)
  const isUnknown = duration >= (isLong ? 2 ** 64 : 0xffffffff)
  // A fragmented file says 0 here, and its length nowhere in one place.
  return scale === 0 || duration === 0 || isUnknown ? null : duration / scale
}
