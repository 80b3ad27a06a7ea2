import { nothingRead, type Reading } from "../../core/measured.ts"
import { readDuration, readMediaUsage, together } from "../../core/media-usage.ts"
import { joinBytes, mebibyte, textOf } from "../../lib/bytes.ts"
import { isDoubtful, JsonTally, type Tally, talliedValue } from "../../lib/json-tally.ts"
import type { Meter } from "../meter.ts"

/** Of a transcript that has to be counted; nobody speaks for that long. */
const longestText = mebibyte

/** Reads a transcript or translation in JSON: its `usage` in tokens or seconds, and the `duration` of the verbose form. */
export function transcriptMeter(): Meter {
  const tally = new JsonTally({ keep: ["usage", "duration"] })
  const said = new JsonTally({ keep: ["text"], limit: longestText })
  return {
    push(chunk) {
      tally.push(chunk)
      said.push(chunk)
    },
    end: () => readTranscript(tally.end()),
    produced() {
      const text = talliedValue(said.end(), "text")
      return typeof text === "string" ? text : ""
    },
  }
}

/** An answer that is the transcript itself, and says nothing else. */
export function plainTranscriptMeter(): Meter {
  const kept: Uint8Array[] = []
  let length = 0
  return {
    push(chunk) {
      if (length < longestText) kept.push(chunk.slice(0, longestText - length))
      length += chunk.length
    },
    end: () => nothingRead,
    produced: () => (kept.length === 0 ? "" : wordsIn(textOf(joinBytes(kept)))),
  }
}

/** Subtitles without their numbers and times. */
function wordsIn(text: string): string {
  const isMark = (line: string): boolean => /^\s*(\d*|WEBVTT.*|.*-->.*)\s*$/.test(line)
  return text
    .split("\n")
    .filter((line) => !isMark(line))
    .join("\n")
}

function readTranscript(tally: Tally): Reading {
  const used = readMediaUsage(talliedValue(tally, "usage"))
  const duration = talliedValue(tally, "duration") ?? undefined
  // What was billed counts, not how long the sound was: vendors round up.
  const isTold = duration === undefined || used.measured.microseconds !== undefined
  const read = isTold ? used : together(used, readDuration(duration))
  return { measured: read.measured, invalid: read.invalid || isDoubtful(tally) }
}
