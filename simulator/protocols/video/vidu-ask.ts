import type { VideoAsk } from "../../memory.ts"
import type { Reply } from "../../wire/reply.ts"
import { pathOf, type VendorRequest } from "../protocol.ts"
import { type Body, bodyOf, isNoneOr, isPictureUrl, isText, isWhole, unitsFor } from "./fields.ts"
import { viduRefusal } from "./vidu-errors.ts"

const longestPrompt = 5000
const usualSeconds = 5
const creditsPerSecond = 8
const ratios = ["16:9", "9:16", "3:4", "4:3", "1:1"]

/** Reads a submit, or refuses it as Vidu does. */
export function readViduAsk(request: VendorRequest): VideoAsk | { readonly refusal: Reply } {
  const body = bodyOf(request)
  const isFromText = pathOf(request).endsWith("/text2video")
  const wrong = body === null ? "body" : wrongField(body, isFromText, wantedPictures(request))
  if (body === null || wrong !== null) return { refusal: viduRefusal(400, `invalid field: ${wrong}`) }
  const { model, prompt, duration = usualSeconds, resolution = "720p", aspect_ratio, images = [] } = body
  const { payload = "", seed = 0, off_peak = false } = body
  const seconds = Number(duration)
  const own = isText(payload) ? { externalId: payload } : {}
  const ratio = isFromText ? (aspect_ratio ?? "16:9") : ""
  const credits = unitsFor(seconds, creditsPerSecond)
  const pictures = Array.isArray(images) ? images.map((image) => String(image).slice(0, 200)) : []
  const asked = { model, resolution, ratio, payload, seed, offPeak: off_peak, images: pictures, credits }
  return { prompt: String(prompt ?? ""), seconds, ...own, asked }
}

/** How many pictures each kind of film is made from. */
function wantedPictures(request: VendorRequest): readonly [least: number, most: number] {
  const path = pathOf(request)
  if (path.endsWith("/text2video")) return [0, 0]
  if (path.endsWith("/img2video")) return [1, 1]
  return path.endsWith("/start-end2video") ? [2, 2] : [1, 7]
}

function wrongField(body: Body, isFromText: boolean, [least, most]: readonly [number, number]): string | null {
  const { model, prompt, duration, resolution, aspect_ratio, images = [] } = body
  if (!isText(model) || !/^vidu/.test(model)) return "model"
  if (prompt === undefined ? isFromText : !isText(prompt, longestPrompt)) return "prompt"
  if (!Array.isArray(images) || images.length < least || images.length > most) return "images"
  if (!images.every(isPictureUrl)) return "images"
  if (aspect_ratio !== undefined && !(isFromText && isNoneOr(aspect_ratio, ratios))) return "aspect_ratio"
  const isFirst = model.startsWith("viduq1")
  if (!isNoneOr(resolution, isFirst ? ["1080p"] : ["540p", "720p", "1080p"])) return "resolution"
  const longest = model.startsWith("viduq3") ? 16 : 10
  const isLength = duration === undefined || (isFirst ? duration === usualSeconds : isWhole(duration, 1, longest))
  return isLength ? null : "duration"
}
