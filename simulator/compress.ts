import { constants, createBrotliCompress, createDeflate, createGzip, createZstdCompress } from "node:zlib"
import type { Piece, Reply } from "./wire/reply.ts"

export type ContentEncoding = "gzip" | "br" | "deflate" | "zstd"

const compressors = {
  gzip: { create: () => createGzip(), flush: constants.Z_SYNC_FLUSH },
  deflate: { create: () => createDeflate(), flush: constants.Z_SYNC_FLUSH },
  br: { create: () => createBrotliCompress(), flush: constants.BROTLI_OPERATION_FLUSH },
  zstd: { create: () => createZstdCompress(), flush: constants.ZSTD_e_flush },
} as const

/** The same answer compressed piece by piece, so that a streamed event can be decoded as soon as it arrives. */
export async function compressed(reply: Reply, encoding: ContentEncoding): Promise<Reply> {
  const headers = [...reply.headers, ["content-encoding", encoding] as const]
  if (reply.framing !== "content-length") return { ...reply, headers, pieces: compressPieces(reply.pieces, encoding) }
  const pieces = await Array.fromAsync(compressPieces(reply.pieces, encoding))
  const length = pieces.reduce((sum, piece) => sum + piece.bytes.length, 0)
  return { ...reply, headers, pieces, length }
}

async function* compressPieces(pieces: Reply["pieces"], encoding: ContentEncoding): AsyncGenerator<Piece> {
  const { create, flush } = compressors[encoding]
  const compressor = create()
  const out: Uint8Array[] = []
  compressor.on("data", (bytes: Uint8Array) => out.push(bytes))
  const taken = (): Uint8Array => Buffer.concat(out.splice(0))
  try {
    for await (const piece of pieces) {
      compressor.write(piece.bytes)
      await new Promise<void>((resolve) => compressor.flush(flush, resolve))
      yield { ...piece, bytes: taken() }
    }
    const ended = new Promise<void>((resolve) => compressor.once("end", resolve))
    compressor.end()
    await ended
    yield { bytes: taken() }
  } finally {
    compressor.destroy()
  }
}
