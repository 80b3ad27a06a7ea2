import type { Size } from "../size-rule.ts"
import type { FrameRule } from "./asking.ts"

/** A vendor's own sizes under its words for resolutions; one that lies stands for the upright one too. */
export type NativeSizes = Readonly<Record<string, readonly string[]>>

/** The rule for a size: one of the vendor's own has the resolution it is listed under, even where its short side is far from it. */
export function ruleFor({ width, height }: Size, rule: FrameRule, native: NativeSizes): FrameRule {
  const [long, short] = [Math.max(width, height), Math.min(width, height)]
  const tier = Object.keys(rule.tiers).find((word) => native[word]?.includes(`${long}x${short}`))
  return tier === undefined ? rule : { ...rule, tiers: { [tier]: short } }
}
