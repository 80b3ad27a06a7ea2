import type { Ask } from "../../admission/ask.ts"
import { microsecondsOf } from "../../core/measured.ts"
import { mediaDuration } from "../../lib/media/duration.ts"

/** 128 kbit/s, as usual for an upload that does not tell its length. */
const usualBytesPerSecond = 16_000

/** How long the sound in a form is, in millionths of a second, for vendors that do not say. */
export function estimateUpload(ask: Ask): number {
  // Vendors take one file; which of several they would take nobody can say, so that the longest counts.
  const lengths = ask.parts("file").map((part) => lengthOf(part.bytes()))
  return Math.max(0, ...lengths)
}

function lengthOf(bytes: Uint8Array): number {
  return microsecondsOf(mediaDuration(bytes)) ?? microsecondsOf(bytes.length / usualBytesPerSecond) ?? 0
}
