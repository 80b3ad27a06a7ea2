import { has, hasText } from "./reading.ts"

/** How far behind the tags the first frame is looked for: encoders may pad. */
const mostPadding = 64 * 1024
const id3HeaderBytes = 10
const id3v1Bytes = 128
const mostTags = 10
/** 320 kbit/s, and some room for pictures behind the sound. */
const mostBitsPerSecond = 400_000

/** Bits in a second by the header's index, in thousands; 0 where there is no such rate. */
const bitrates1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0]
const bitrates2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0]
const rates1 = [44_100, 48_000, 32_000, 0]

/** MP3: frames as the encoder counted them, else by the first frame's bit rate. */
export function mp3Duration(view: DataView): number | null {
  const tagEnd = skipTags(view)
  const start = firstFrame(view, tagEnd)
  if (start === null) return null
  const { frame, at } = start
  const end = view.byteLength - (hasText(view, view.byteLength - id3v1Bytes, "TAG") ? id3v1Bytes : 0)
  const bits = (end - at) * 8
  const counted = ((countedFrames(view, at, frame) ?? 0) * frame.samples) / frame.rate
  // More bits in a second than the format has: the notes are those of another file.
  return counted > 0 && bits / counted <= mostBitsPerSecond ? counted : bits / frame.bitsPerSecond
}

interface Frame {
  /** In a frame. */
  readonly samples: number
  /** Samples in a second. */
  readonly rate: number
  readonly bitsPerSecond: number
  readonly bytes: number
  /** Where the encoder's own notes stand, from the start of the frame. */
  readonly notesAt: number
}

/** ID3v2 tags, of which some files have several. */
function skipTags(view: DataView): number {
  let at = 0
  for (let tags = 0; tags < mostTags && hasText(view, at, "ID3") && has(view, at, id3HeaderBytes); tags++) {
    const hasFooter = (view.getUint8(at + 5) & 0x10) !== 0
    at += id3HeaderBytes + syncsafe(view, at + 6) + (hasFooter ? id3HeaderBytes : 0)
  }
  return at
}

/** Seven bits of each byte, so that no tag looks like a frame. */
function syncsafe(view: DataView, at: number): number {
  let size = 0
  for (let i = 0; i < 4; i++) size = size * 128 + (view.getUint8(at + i) & 0x7f)
  return size
}

/** The first frame that another one follows, or that is all there is: the same bits occur elsewhere by chance. */
function firstFrame(view: DataView, from: number): { frame: Frame; at: number } | null {
  const last = Math.min(from + mostPadding, view.byteLength - 4)
  for (let at = from; at <= last; at++) {
    if (view.getUint8(at) !== 0xff) continue
    const frame = readFrame(view, at)
    if (frame === null) continue
    const next = at + frame.bytes
    const isAlone = at === from && next + 4 > view.byteLength
    if (isAlone || hasText(view, next, "TAG") || (has(view, next, 4) && readFrame(view, next) !== null))
      return { frame, at }
  }
  return null
}

/** MPEG 1, 2 and 2.5, layer III. */
function readFrame(view: DataView, at: number): Frame | null {
  const header = view.getUint32(at)
  const version = (header >>> 19) & 3
  const isLayer3 = ((header >>> 17) & 3) === 1
  if (header >>> 21 !== 0x7ff || version === 1 || !isLayer3) return null
  const isMpeg1 = version === 3
  // MPEG 2 halves the rates of MPEG 1, MPEG 2.5 halves them again.
  const rate = rates1[(header >>> 10) & 3]! / (isMpeg1 ? 1 : version === 2 ? 2 : 4)
  const bitsPerSecond = (isMpeg1 ? bitrates1 : bitrates2)[(header >>> 12) & 15]! * 1000
  if (rate === 0 || bitsPerSecond === 0) return null
  const samples = isMpeg1 ? 1152 : 576
  const isMono = ((header >>> 6) & 3) === 3
  const sideBytes = isMpeg1 ? (isMono ? 17 : 32) : isMono ? 9 : 17
  const bytes = Math.floor((samples / 8) * (bitsPerSecond / rate)) + ((header >>> 9) & 1)
  return { samples, rate, bitsPerSecond, bytes, notesAt: 4 + sideBytes }
}

/** What Xing, Info or VBRI notes in the first frame say; null where there are none. */
function countedFrames(view: DataView, at: number, frame: Frame): number | null {
  const xing = at + frame.notesAt
  if ((hasText(view, xing, "Xing") || hasText(view, xing, "Info")) && has(view, xing, 12)) {
    const isCounted = (view.getUint32(xing + 4) & 1) === 1
    return isCounted ? view.getUint32(xing + 8) || null : null
  }
  const vbri = at + 36
  return hasText(view, vbri, "VBRI") && has(view, vbri, 18) ? view.getUint32(vbri + 14) || null : null
}
