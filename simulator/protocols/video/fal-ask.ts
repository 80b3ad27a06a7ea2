import type { VideoAsk } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { pathOf, type VendorRequest } from "../protocol.ts"
import { type Body, bodyOf, isPictureUrl, isText } from "./fields.ts"

const usualSeconds = 5
const wanFramesPerSecond = 16
const videoApps =
  /video|veo|sora|seedance|hailuo|minimax|pixverse|vidu|hunyuan-v|luma|ray-?2|wan(?:[/.\d-]|$)|ltx|grok-imagine|kling/

/** Each family of apps has its own way to say how long a film is to be. */
const families: readonly (readonly [app: RegExp, length: RegExp])[] = [
  [/veo/, /^[468]s$/],
  [/luma|ray-?2/, /^\d+s$/],
  [/kling|hailuo|minimax|seedance|pixverse/, /^\d+$/],
]

/** fal serves images and films alike; only the app's name tells. */
export function isVideoApp(request: VendorRequest): boolean {
  return videoApps.test(pathOf(request))
}

/** Reads a submit, or refuses it as the app's own checks do. */
export function readFalAsk(request: VendorRequest): VideoAsk | { readonly refusal: Reply } {
  const path = pathOf(request)
  const body = bodyOf(request)
  if (body === null || !isText(body.prompt)) return refused("prompt", "Field required", "missing", undefined)
  if (path.includes("image-to-video") && !isPictureUrl(body.image_url)) {
    return refused("image_url", "Field required", "missing", body.image_url)
  }
  const { duration, prompt } = body
  if (duration !== undefined && !isLength(path, duration)) {
    return refused("duration", "unexpected value; permitted: '5', '10'", "literal_error", duration)
  }
  const [app] = /^(?:\/v\d+(?=\/))?\/[^/]+\/[^/]+/.exec(path) ?? [path]
  return { prompt, seconds: lengthOf(body), asked: { app } }
}

function isLength(path: string, duration: unknown): boolean {
  const family = families.find(([app]) => app.test(path))
  if (family !== undefined) return typeof duration === "string" && family[1].test(duration)
  return typeof duration === "number" || (typeof duration === "string" && /^\d+s?$/.test(duration))
}

function lengthOf({ duration, num_frames }: Body): number {
  if (duration !== undefined) return Number.parseFloat(String(duration))
  return typeof num_frames === "number" ? num_frames / wanFramesPerSecond : usualSeconds
}

function refused(field: string, msg: string, type: string, input: unknown): { readonly refusal: Reply } {
  return { refusal: jsonReply(422, { detail: [{ loc: ["body", field], msg, type, input }] }) }
}
