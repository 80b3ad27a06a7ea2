/** Whether this ASCII text stands there. */
export function hasText(view: DataView, at: number, text: string): boolean {
  if (!has(view, at, text.length)) return false
  for (let i = 0; i < text.length; i++) if (view.getUint8(at + i) !== text.charCodeAt(i)) return false
  return true
}

/** True where `length` bytes from `at` on are all there. */
export function has(view: DataView, at: number, length: number): boolean {
  return at >= 0 && at + length <= view.byteLength
}

/** A 64-bit number; beyond 2^53 it is inexact, and larger than any file anyway. */
export function uint64(view: DataView, at: number): number {
  return view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4)
}
