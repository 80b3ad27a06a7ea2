import { GatewayError } from "../../core/errors.ts"
import type { JsonObject } from "../../core/json.ts"
import type { VideoImage } from "../../core/video-vendor.ts"
import { nearestRatio, type Size } from "../size-rule.ts"

/** Names that belong to the gateway's own call, or ask for more videos than the one that a job is. */
const gatewaysOwn: readonly string[] = ["model", "prompt", "n"]

/** Whatever a vendor calls it: results and news of them would go past the gateway. */
const callback = /callback|web_?hook|notify/i

/** The caller's other fields as the vendor's own parameters, but those that `except` names. */
export function passedOn(extra: JsonObject, except: readonly string[]): JsonObject {
  const held = (name: string): boolean => gatewaysOwn.includes(name) || except.includes(name) || callback.test(name)
  return Object.fromEntries(Object.entries(extra).filter(([name]) => !held(name)))
}

/** A picture as one text: its address, or all of it as a data URI. */
export function imageText(image: VideoImage): string {
  return "url" in image ? image.url : `data:${image.mediaType};base64,${image.base64}`
}

/** Refuses text-to-video for models that only go on from a picture. */
export function needsImage(image: VideoImage | null): asserts image is VideoImage {
  if (image !== null) return
  throw new GatewayError("invalid_parameter", "image_url: this model makes videos from a picture only; give it one")
}

/** What frames a model makes. */
export interface FrameRule {
  /** The aspect ratios it takes; left out where the picture decides on the shape, or the model does. */
  readonly ratios?: readonly string[]
  /** The vendor's words for its resolutions, smallest first, each with the short side that it stands for. */
  readonly tiers: Readonly<Record<string, number>>
}

export interface Frame {
  /** Null where the ratio is not the caller's to choose. */
  readonly ratio: string | null
  readonly tier: string
}

/** How far a short side may be from what a word stands for: callers should get about what they asked for and pay for no more. */
const least = 0.8
const most = 1.03

/** The size in the vendor's words, or a refusal that lists what the model takes. */
export function fitFrame(size: Size, rule: FrameRule): Frame {
  const ratio = rule.ratios === undefined ? null : nearestRatio(size, rule.ratios)
  const side = Math.min(size.width, size.height)
  const tier = Object.entries(rule.tiers).find(([, means]) => side >= means * least && side <= means * most)
  if (tier !== undefined && (rule.ratios === undefined || ratio !== null)) return { ratio, tier: tier[0] }
  throw new GatewayError(
    "invalid_parameter",
    `size: this model does not make ${size.width}x${size.height}; it takes ${framesText(rule)}`,
  )
}

function framesText({ ratios, tiers }: FrameRule): string {
  const sides = Object.entries(tiers).map(([word, means]) => `${means} (${word})`)
  const shapes = ratios === undefined ? "sizes" : `sizes of the aspect ratios ${ratios.join(", ")}`
  return `${shapes} whose short side is ${sides.join(", ")}`
}
