import { blockBytes } from "./bulk.ts"
import { picture, pictureSide } from "./protocols/pictures.ts"
import type { Piece } from "./wire/reply.ts"

export interface Mp4Options {
  readonly seconds: number
  /** Where the index stands, before the pictures or after them; `front` otherwise. */
  readonly moov?: "front" | "end"
  /** Size of the whole file; never less than what belongs in it. */
  readonly bytes?: number
}

/** A film as a file that nobody holds in memory: any part of it is made when it is read. */
export interface Mp4 {
  readonly length: number
  /** The bytes from `start` up to, not including, `end`. */
  pieces(start?: number, end?: number): Iterable<Piece>
}

const timescale = 1000
const usualBytes = 2048
const boxHead = 8
/** PNG among the object types of MPEG-4. */
const pngObject = 0x6d
const unity = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000]
const filler = Buffer.alloc(blockBytes)

/** A real MP4 of one still picture that stands for so many seconds. */
export function mp4({ seconds, moov = "front", bytes = usualBytes }: Mp4Options): Mp4 {
  const brand = box("ftyp", text("isom"), u32(0x200), text("isomiso2mp41"))
  const sample = picture(Math.round(seconds))
  const duration = Math.max(1, Math.round(seconds * timescale))
  const indexBytes = movie(duration, sample.length, 0).length
  const padding = Math.max(0, bytes - brand.length - indexBytes - boxHead - sample.length)
  const mediaAt = brand.length + (moov === "front" ? indexBytes : 0)
  const index = movie(duration, sample.length, mediaAt + boxHead)
  const media = Buffer.concat([u32(boxHead + sample.length + padding), text("mdat"), sample])
  const before = Buffer.concat(moov === "front" ? [brand, index, media] : [brand, media])
  const after = moov === "front" ? Buffer.alloc(0) : index
  const length = before.length + padding + after.length
  return {
    length,
    *pieces(start = 0, end = length) {
      yield { bytes: before.subarray(start, end) }
      const fill = [Math.max(start, before.length), Math.min(end, before.length + padding)] as const
      for (let at = fill[0]; at < fill[1]; at += blockBytes) {
        // The event loop turns between blocks, so that a fast reader starves nobody.
        yield { bytes: filler.subarray(0, Math.min(blockBytes, fill[1] - at)), afterMs: 0 }
      }
      const tail = before.length + padding
      yield { bytes: after.subarray(Math.max(0, start - tail), Math.max(0, end - tail)) }
    },
  }
}

function movie(duration: number, sampleBytes: number, sampleAt: number): Buffer {
  const header = [0, 0, timescale, duration, 0x10000]
  // Volume, reserved words, the matrix, predefined words and the next track's number.
  const movieHeader = full(
    "mvhd",
    0,
    ...header.map(u32),
    u16(0x100),
    Buffer.alloc(10),
    ...unity.map(u32),
    zeros(6),
    u32(2),
  )
  const side = pictureSide * 0x10000
  const track = [
    u32(0),
    u32(0),
    u32(1),
    u32(0),
    u32(duration),
    zeros(2),
    zeros(2),
    ...unity.map(u32),
    u32(side),
    u32(side),
  ]
  const data = box("dinf", full("dref", 0, u32(1), full("url ", 1)))
  const information = box("minf", full("vmhd", 1, zeros(2)), data, sampleTable(duration, sampleBytes, sampleAt))
  const handler = full("hdlr", 0, u32(0), text("vide"), zeros(3), text("VideoHandler\0"))
  const mediaHeader = full("mdhd", 0, u32(0), u32(0), u32(timescale), u32(duration), u16(0x55c4), u16(0))
  return box(
    "moov",
    movieHeader,
    box("trak", full("tkhd", 3, ...track), box("mdia", mediaHeader, handler, information)),
  )
}

/** One sample, which lasts as long as the film. */
function sampleTable(duration: number, sampleBytes: number, sampleAt: number): Buffer {
  return box(
    "stbl",
    full("stsd", 0, u32(1), sampleEntry()),
    full("stts", 0, u32(1), u32(1), u32(duration)),
    full("stsc", 0, u32(1), u32(1), u32(1), u32(1)),
    full("stsz", 0, u32(sampleBytes), u32(1)),
    full("stco", 0, u32(1), u32(sampleAt)),
  )
}

function sampleEntry(): Buffer {
  const decoder = descriptor(4, Buffer.from([pngObject, 0x11, 0, 0, 0]), zeros(2))
  const stream = full("esds", 0, descriptor(3, Buffer.from([0, 1, 0]), decoder, descriptor(6, Buffer.from([2]))))
  const size = [u16(pictureSide), u16(pictureSide), u32(0x480000), u32(0x480000), u32(0), u16(1)]
  return box("mp4v", Buffer.alloc(6), u16(1), Buffer.alloc(16), ...size, Buffer.alloc(32), u16(24), u16(0xffff), stream)
}

function box(type: string, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([u32(boxHead + content.length), text(type), content])
}

/** A box with a version, always 0, and flags. */
function full(type: string, flags: number, ...parts: readonly Uint8Array[]): Buffer {
  return box(type, u32(flags), ...parts)
}

function descriptor(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([tag, content.length]), content])
}

function text(value: string): Buffer {
  return Buffer.from(value, "latin1")
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function u16(value: number): Buffer {
  return u32(value).subarray(2)
}

function zeros(words: number): Buffer {
  return Buffer.alloc(4 * words)
}
