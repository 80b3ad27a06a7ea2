import { flacDuration } from "./flac.ts"
import { mp3Duration } from "./mp3.ts"
import { mp4Duration } from "./mp4.ts"
import { oggDuration } from "./ogg.ts"
import { has, hasText } from "./reading.ts"
import { wavDuration } from "./wav.ts"
import { webmDuration } from "./webm.ts"

/** Lengths beyond this come from broken headers. */
const mostSeconds = 10_000_000

/** Marks of MP4 files, some of which begin without a `ftyp`. */
const mp4Boxes = ["ftyp", "moov", "mdat", "free", "skip", "wide"]
const ebmlMark = 0x1a45dfa3

/** How long sound or film is in seconds, as its own headers tell; null where they do not. */
export function mediaDuration(bytes: Uint8Array): number | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const seconds = readerFor(view)(view)
  return seconds !== null && seconds >= 0 && seconds <= mostSeconds ? seconds : null
}

/** Reads the length of one format. It never reads outside the bytes, and does little work however they are. */
type DurationReader = (view: DataView) => number | null

function readerFor(view: DataView): DurationReader {
  if (hasText(view, 0, "RIFF") || hasText(view, 0, "RF64")) return wavDuration
  if (hasText(view, 0, "fLaC")) return flacDuration
  if (hasText(view, 0, "OggS")) return oggDuration
  if (has(view, 0, 4) && view.getUint32(0) === ebmlMark) return webmDuration
  if (mp4Boxes.some((type) => hasText(view, 4, type))) return mp4Duration
  return mp3Duration
}
