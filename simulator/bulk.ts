import type { Piece } from "./wire/reply.ts"

const megabyte = 1024 * 1024
/** Big answers are multiples of it, so that none stands in memory. */
export const blockBytes = 64 * 1024
/** The event loop turns after this many, or a reader as fast as the writer would starve everyone else. */
const blocksPerTurn = 16

export function blocksIn(megabytes: number): number {
  return Math.max(1, Math.round((megabytes * megabyte) / blockBytes))
}

/** The same bytes again and again, each time when the ones before have left. */
export function* repeated(bytes: Uint8Array, times: number): Generator<Piece> {
  for (let sent = 0; sent < times; sent++) yield sent % blocksPerTurn === 0 ? { bytes, afterMs: 0 } : { bytes }
}
