import { GatewayError } from "../../core/errors.ts"
import type { JsonObject } from "../../core/json.ts"
import { fitSize, type Size, type SizeRule } from "../size-rule.ts"
import { type FrameRule, fitFrame } from "./asking.ts"
import { type DurationRule, fitDuration } from "./duration-rule.ts"

/** How models of many makers are told of a size: by `aspect_ratio`, `resolution` or both, by `size`, or not at all (null). */
export type SizeFields = FrameRule | SizeRule | null

/** Resolutions that are not called by their short side. */
const sides: ReadonlyMap<string, number> = new Map([
  ["2k", 1440],
  ["4k", 2160],
])

/** Resolutions written as a line, `480p 720p`, and the aspect ratios beside them where the model takes one. */
export function frames(words: string, shapes: string | null = null): FrameRule {
  const tiers = Object.fromEntries(words.split(" ").map((word) => [word, sides.get(word) ?? Number.parseInt(word, 10)]))
  return shapes === null ? { tiers } : { tiers, ratios: shapes.split(" ") }
}

/** All that is in use, for models that are not known here: the vendor is the judge. */
export const anyFrame = frames("480p 540p 720p 768p 1080p 2k 4k", "21:9 16:9 3:2 4:3 1:1 3:4 2:3 9:16 9:21")

/** The size in the model's own fields, or a refusal that lists what it takes. */
export function sizeFields(size: Size | null, rule: SizeFields): JsonObject {
  if (size === null) return {}
  if (rule === null) {
    throw new GatewayError("invalid_parameter", "size: this model decides on the size itself; leave it out")
  }
  if ("tiers" in rule) {
    const { ratio, tier } = fitFrame(size, rule)
    return ratio === null ? { resolution: tier } : { aspect_ratio: ratio, resolution: tier }
  }
  const fitted = fitSize(size, rule)
  return fitted.kind === "ratio" ? { aspect_ratio: fitted.ratio } : { size: `${fitted.width}x${fitted.height}` }
}

/** The length to ask for; null for models that take none, which refuse to be asked for one. */
export function fitLength(asked: number | null, rule: DurationRule | null): number | null {
  if (rule !== null) return fitDuration(asked, rule)
  if (asked === null) return null
  throw new GatewayError("invalid_parameter", "duration: this model decides on the length itself; leave it out")
}
