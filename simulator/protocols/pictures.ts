import { crc32, deflateSync } from "node:zlib"
import { blockBytes, blocksIn, repeated } from "../bulk.ts"
import type { Piece } from "../wire/reply.ts"

export const pictureSide = 8
const bytesPerPixel = 3
const signature = Buffer.from("89504e470d0a1a0a", "hex")

/** A real PNG of one colour, which the number chooses. */
export function picture(number: number): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(pictureSide, 0)
  header.writeUInt32BE(pictureSide, 4)
  // 8 bits a channel, true colour.
  header.set([8, 2], 8)
  const colour = [(number * 67) % 256, (number * 151 + 90) % 256, (number * 211 + 180) % 256]
  const row = Buffer.concat([Buffer.alloc(1), Buffer.alloc(pictureSide * bytesPerPixel, Buffer.from(colour))])
  const pixels = deflateSync(Buffer.concat(Array.from({ length: pictureSide }, () => row)))
  return Buffer.concat([signature, block("IHDR", header), block("IDAT", pixels), block("IEND", Buffer.alloc(0))])
}

function block(type: string, data: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), data])
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  checksum.writeUInt32BE(crc32(typed))
  return Buffer.concat([length, typed, checksum])
}

/** Bytes that are made as they are read. */
export interface Bulk {
  readonly length: number
  pieces(): Iterable<Piece>
}

/** A picture with so much behind it; viewers stop at the picture's end. */
export function bigPicture(number: number, megabytes: number): Bulk {
  return bulk(picture(number), Buffer.alloc(blockBytes), blocksIn(megabytes))
}

/** The same as base64 text. */
export function bigPictureBase64(number: number, megabytes: number): Bulk {
  const start = picture(number)
  // Whole groups of three bytes need no padding, which may stand only at the end.
  const whole = Buffer.concat([start, Buffer.alloc((3 - (start.length % 3)) % 3)])
  return bulk(Buffer.from(whole.toString("base64")), Buffer.alloc(blockBytes, "A"), blocksIn(megabytes))
}

function bulk(start: Uint8Array, filler: Uint8Array, blocks: number): Bulk {
  return {
    length: start.length + blocks * filler.length,
    *pieces() {
      yield { bytes: start }
      yield* repeated(filler, blocks)
    },
  }
}
