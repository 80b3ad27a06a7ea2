import { has, hasText, uint64 } from "./reading.ts"

/** Boxes on one level: fragmented files have many, but their `moov` comes first. */
const mostBoxes = 10_000

/** A wish to see `length` bytes of the file from `at` on. */
export interface Wish {
  readonly at: number
  readonly length: number
}

/** A search through a file that is not all at hand: each wish is answered with exactly those bytes, or null where they are not to be had. */
export type Search<T> = Generator<Wish, T, DataView | null>

/** MP4 and M4A: the duration as the file's own headers tell, wherever they stand. */
export function mp4Duration(view: DataView): number | null {
  const search = searchMp4Duration(view.byteLength)
  let step = search.next()
  while (!step.done) {
    const { at, length } = step.value
    step = search.next(has(view, at, length) ? new DataView(view.buffer, view.byteOffset + at, length) : null)
  }
  return step.value
}

/** Searches for the duration in `moov/mvhd`; a fragmented file has it in `moov/mvex/mehd`, if anywhere. */
export function* searchMp4Duration(fileBytes: number): Search<number | null> {
  const moov = yield* findBox("moov", { start: 0, end: fileBytes })
  const mvhd = moov === null ? null : yield* findBox("mvhd", moov)
  const movie = mvhd === null ? null : yield { at: mvhd.start, length: movieHeaderBytes }
  if (moov === null || movie === null) return null
  const isLong = movie.getUint8(0) === 1
  const scale = movie.getUint32(isLong ? 20 : 12)
  const ticks = ticksAt(movie, isLong ? 24 : 16, isLong) ?? (yield* searchFragments(moov))
  return scale === 0 || ticks === null ? null : ticks / scale
}

const movieHeaderBytes = 32
const fragmentsHeaderBytes = 12

function* searchFragments(moov: Content): Search<number | null> {
  const mvex = yield* findBox("mvex", moov)
  const mehd = mvex === null ? null : yield* findBox("mehd", mvex)
  const long =
    mehd === null ? null : yield { at: mehd.start, length: Math.min(mehd.end - mehd.start, fragmentsHeaderBytes) }
  if (long === null || !has(long, 0, 8)) return null
  const isLong = long.getUint8(0) === 1
  return isLong && !has(long, 4, 8) ? null : ticksAt(long, 4, isLong)
}

/** Null for what means that the length is not known: nothing, or all ones. */
function ticksAt(view: DataView, at: number, isLong: boolean): number | null {
  const ticks = isLong ? uint64(view, at) : view.getUint32(at)
  return ticks === 0 || ticks >= (isLong ? 2 ** 64 : 0xffffffff) ? null : ticks
}

/** The content of a box. */
interface Content {
  readonly start: number
  readonly end: number
}

function* findBox(type: string, within: Content): Search<Content | null> {
  let at = within.start
  for (let boxes = 0; boxes < mostBoxes && at + 8 <= within.end; boxes++) {
    const head = yield { at, length: 8 }
    if (head === null) return null
    const short = head.getUint32(0)
    // 1: the size follows in 64 bits; 0: the box goes on to the end.
    const isLong = short === 1
    const long = isLong ? yield { at: at + 8, length: 8 } : null
    if (isLong && long === null) return null
    const size = long !== null ? uint64(long, 0) : short === 0 ? within.end - at : short
    const start = at + (isLong ? 16 : 8)
    const end = at + size
    if (end < start) return null
    if (hasText(head, 4, type)) return { start, end: Math.min(end, within.end) }
    at = end
  }
  return null
}
