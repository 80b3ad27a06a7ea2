import { microsecondsOf } from "../core/measured.ts"
import type { SecondsSource } from "../core/video-job.ts"
import { probeSeconds, type RangeRead } from "../lib/media/mp4-probe.ts"

/** Films of vendors are seconds long: a file that says more than this has a broken header, and nobody pays by one. */
const mostProbedSeconds = 3600

export interface KnownLength {
  /** As the vendor reports it with the result. */
  readonly reported: number | null
  /** As it was asked of the vendor. */
  readonly sentSeconds: number | null
}

export interface VideoLength {
  readonly microseconds: number
  readonly source: SecondsSource
}

/**
 * The length that a video is charged by: what the vendor reports, else what the file itself says, to the microsecond, else
 * what was asked for. Null where none of them is known. `read` is null where there is no file to look into.
 */
export async function lengthOf(known: KnownLength, read: RangeRead | null): Promise<VideoLength | null> {
  const told = microsecondsOf(known.reported)
  if (told !== null) return { microseconds: told, source: "reported" }
  const seconds = read === null ? null : await probeSeconds(read, null)
  const probed = seconds === null || seconds > mostProbedSeconds ? null : microsecondsOf(seconds)
  // A film of no length at all is another broken header.
  if (probed !== null && probed > 0) return { microseconds: probed, source: "probed" }
  const sent = microsecondsOf(known.sentSeconds)
  return sent === null ? null : { microseconds: sent, source: "sent" }
}
