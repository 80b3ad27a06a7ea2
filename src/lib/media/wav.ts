import { has, hasText } from "./reading.ts"

/** Chunks before the sound: real files have a handful. */
const mostChunks = 1000
/** Recorders that write to a pipe leave the size open; RF64 keeps it elsewhere. */
const openSize = 0xffffffff
/** PCM, floating point, and the extensible form, which is one of them in all but rare files. */
const uncompressed: ReadonlySet<number> = new Set([1, 3, 0xfffe])

/** WAV, WAVE_FORMAT_EXTENSIBLE and RF64: bytes of sound by bytes in a second. */
export function wavDuration(view: DataView): number | null {
  if (!hasText(view, 8, "WAVE")) return null
  let bytesPerSecond = 0
  let at = 12
  for (let chunks = 0; chunks < mostChunks && has(view, at, 8); chunks++) {
    const size = view.getUint32(at + 4, true)
    const start = at + 8
    if (hasText(view, at, "fmt ") && has(view, start, 16)) bytesPerSecond = readRate(view, start)
    if (hasText(view, at, "data")) return bytesPerSecond === 0 ? null : soundBytes(view, start, size) / bytesPerSecond
    // Chunks stand at even places.
    at = start + size + (size % 2)
  }
  return null
}

/** Players go by what a sample takes, and so do we; only a compressed sound is told by its bytes in a second. */
function readRate(view: DataView, at: number): number {
  if (!uncompressed.has(view.getUint16(at, true))) return view.getUint32(at + 8, true)
  const channels = view.getUint16(at + 2, true)
  const bytesPerSample = Math.ceil(view.getUint16(at + 14, true) / 8)
  return view.getUint32(at + 4, true) * channels * bytesPerSample
}

function soundBytes(view: DataView, start: number, size: number): number {
  const left = view.byteLength - start
  return size === 0 || size === openSize ? left : Math.min(size, left)
}
