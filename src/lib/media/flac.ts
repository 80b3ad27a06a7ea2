import { has } from "./reading.ts"

const streamInfo = 0

/** FLAC: samples by samples in a second, both in the block that must come first. */
export function flacDuration(view: DataView): number | null {
  if (!has(view, 0, 26) || (view.getUint8(4) & 0x7f) !== streamInfo) return null
  const rate = view.getUint32(18) >>> 12
  const samples = (view.getUint8(21) & 0x0f) * 2 ** 32 + view.getUint32(22)
  // An encoder that writes to a pipe does not know how many there will be.
  return rate === 0 || samples === 0 ? null : samples / rate
}
