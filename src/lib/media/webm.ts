import { has } from "./reading.ts"

const segmentId = 0x18538067
const infoId = 0x1549a966
const scaleId = 0x2ad7b1
const durationId = 0x4489

/** Elements on one level before the wanted one; `Info` stands near the beginning. */
const mostElements = 1000
const usualScale = 1_000_000
const nanosecondsPerSecond = 1_000_000_000

/** WebM and Matroska: the duration in `Segment/Info`; a recording that was streamed has none. */
export function webmDuration(view: DataView): number | null {
  const info = inside(view, infoId, inside(view, segmentId, { start: 0, end: view.byteLength }))
  const duration = inside(view, durationId, info)
  const ticks = duration === null ? null : float(view, duration)
  if (ticks === null) return null
  const scale = inside(view, scaleId, info)
  const perTick = scale === null ? usualScale : unsigned(view, scale)
  return perTick === 0 ? null : (ticks * perTick) / nanosecondsPerSecond
}

/** The content of an element. */
interface Content {
  readonly start: number
  readonly end: number
}

function inside(view: DataView, id: number, within: Content | null): Content | null {
  if (within === null) return null
  let at = within.start
  for (let elements = 0; elements < mostElements && at < within.end; elements++) {
    const idLength = vintLength(view, at, 4)
    const sizeLength = idLength === 0 ? 0 : vintLength(view, at + idLength, 8)
    if (sizeLength === 0) return null
    const start = at + idLength + sizeLength
    const size = sizeAt(view, at + idLength, sizeLength)
    // An unknown size goes on to the end of what is around it.
    const end = size === null ? within.end : Math.min(start + size, within.end)
    if (number(view, at, idLength) === id) return { start, end }
    at = end
  }
  return null
}

/** How many bytes a number of variable length takes, as its first byte tells; 0 where it is none or not all there. */
function vintLength(view: DataView, at: number, most: number): number {
  if (!has(view, at, 1)) return 0
  const length = Math.clz32(view.getUint8(at)) - 23
  return length <= most && has(view, at, length) ? length : 0
}

/** The size without its length marker; null where all bits are set, which says unknown. */
function sizeAt(view: DataView, at: number, length: number): number | null {
  const first = view.getUint8(at) & (0xff >> length)
  const size = first * 256 ** (length - 1) + number(view, at + 1, length - 1)
  return size >= 2 ** (7 * length) - 1 ? null : size
}

function unsigned(view: DataView, { start, end }: Content): number {
  return end - start > 8 ? 0 : number(view, start, end - start)
}

function float(view: DataView, { start, end }: Content): number | null {
  if (end - start === 4) return view.getFloat32(start)
  return end - start === 8 ? view.getFloat64(start) : null
}

function number(view: DataView, at: number, length: number): number {
  let value = 0
  for (let i = 0; i < length; i++) value = value * 256 + view.getUint8(at + i)
  return value
}
