import type { Reading } from "../../core/measured.ts"
import { readDuration, readMediaUsage, together } from "../../core/media-usage.ts"
import { isDoubtful, JsonTally, type Tally, talliedValue } from "../../lib/json-tally.ts"
import type { Meter } from "../meter.ts"

/** Reads a transcript or translation in JSON: its `usage` in tokens or seconds, and the `duration` of the verbose form. */
export function transcriptMeter(): Meter {
  const tally = new JsonTally({ keep: ["usage", "duration"] })
  return {
    push: (chunk) => tally.push(chunk),
    end: () => readTranscript(tally.end()),
  }
}

function readTranscript(tally: Tally): Reading {
  const used = readMediaUsage(talliedValue(tally, "usage"))
  const duration = talliedValue(tally, "duration") ?? undefined
  // What was billed counts, not how long the sound was: vendors round up.
  const isTold = duration === undefined || used.measured.microseconds !== undefined
  const read = isTold ? used : together(used, readDuration(duration))
  return { measured: read.measured, invalid: read.invalid || isDoubtful(tally) }
}
