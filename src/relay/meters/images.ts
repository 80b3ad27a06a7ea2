import type { Reading } from "../../core/measured.ts"
import { countImages, readMediaUsage, together, traits } from "../../core/media-usage.ts"
import { isDoubtful, JsonTally, type Tally, talliedValue } from "../../lib/json-tally.ts"
import type { Meter } from "../meter.ts"

/** Reads an answer of the images API: how many pictures, their size and quality, and tokens where the vendor counts them. */
export function imagesMeter(): Meter {
  const tally = new JsonTally({ keep: ["usage", "size", "quality"], note: ["data"] })
  return {
    push: (chunk) => tally.push(chunk),
    end: () => readImages(tally.end()),
  }
}

/** An answer that is one picture itself. */
export function pictureMeter(): Meter {
  return { push() {}, end: () => ({ measured: { images: 1 }, invalid: false }) }
}

function readImages(tally: Tally): Reading {
  const usage = talliedValue(tally, "usage")
  const data = tally.fields.get("data")
  const counted = data?.kind === "array" ? countImages(data.entries, usage) : { measured: {}, invalid: true }
  const told = together(counted, readMediaUsage(usage))
  return {
    measured: { ...told.measured, ...traits(talliedValue(tally, "size"), talliedValue(tally, "quality")) },
    invalid: told.invalid || isDoubtful(tally),
  }
}
