import { has, hasText } from "./reading.ts"

/** A page is at most this long, header and all. */
const mostPageBytes = 65_307
/** The last page is looked for in this many of the largest. */
const pagesSearched = 4
const opusRate = 48_000
const headerBytes = 27

/** Ogg with Vorbis or Opus: where the last page ends, in samples. */
export function oggDuration(view: DataView): number | null {
  if (!has(view, 0, headerBytes)) return null
  const codec = readCodec(view, headerBytes + view.getUint8(26))
  const end = codec === null ? null : lastGranule(view, view.getUint32(14, true))
  return codec === null || end === null ? null : Math.max(0, end - codec.skipped) / codec.rate
}

interface Codec {
  /** Samples in a second. */
  readonly rate: number
  /** Samples at the beginning that are not to be heard. */
  readonly skipped: number
}

function readCodec(view: DataView, at: number): Codec | null {
  if (hasText(view, at, "OpusHead") && has(view, at, 12))
    return { rate: opusRate, skipped: view.getUint16(at + 10, true) }
  if (!hasText(view, at, "\x01vorbis") || !has(view, at, 16)) return null
  const rate = view.getUint32(at + 12, true)
  return rate === 0 ? null : { rate, skipped: 0 }
}

/** The end of the last page that ends a packet of this stream; pages of other streams may stand between. */
function lastGranule(view: DataView, serial: number): number | null {
  const earliest = Math.max(0, view.byteLength - pagesSearched * mostPageBytes)
  for (let at = view.byteLength - headerBytes; at >= earliest; at--) {
    if (!hasText(view, at, "OggS") || view.getUint32(at + 14, true) !== serial) continue
    const granule = view.getBigInt64(at + 6, true)
    if (granule >= 0n) return Number(granule)
  }
  return null
}
