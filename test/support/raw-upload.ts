import type { RawConnection } from "./raw-http.ts"

/** Large bodies on a raw connection. */

export const mebibyte = 1024 * 1024

/** Writes at the pace of the reader; stops when the connection is over. */
export async function pour(connection: RawConnection, pieces: Iterable<Uint8Array>): Promise<void> {
  for (const piece of pieces) {
    if (connection.socket.destroyed) return
    if (connection.socket.write(piece)) continue
    const drained = new Promise<void>((resolve) => connection.socket.once("drain", resolve))
    await Promise.race([drained, connection.closed])
  }
}

export function* slices(bytes: Uint8Array, size = 4 * mebibyte): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
