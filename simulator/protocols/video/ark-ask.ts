import { isObject } from "../../../src/core/json.ts"
import type { VideoAsk } from "../../memory.ts"
import type { Reply } from "../../wire/reply.ts"
import type { VendorRequest } from "../protocol.ts"
import { arkError } from "./ark-errors.ts"
import { type Body, bodyOf, isNoneOr, isPictureUrl, isText, isWhole } from "./fields.ts"

const usualSeconds = 5
const framesPerSecond = 24
const ratios = ["16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive"]
const roles = ["first_frame", "last_frame", "reference_image"]
/** Pixels in one frame, about. */
const pixels: Readonly<Record<string, number>> = {
  "480p": 864 * 480,
  "720p": 1280 * 720,
  "1080p": 1920 * 1080,
  "4k": 3840 * 2160,
}

/** Reads a submit, or refuses it as Ark does. */
export function readArkAsk(request: VendorRequest): VideoAsk | { readonly refusal: Reply } {
  const body = bodyOf(request)
  if (body === null) return refused("InvalidParameter", "body", "the request body is not JSON")
  const { model, content, resolution = "720p", ratio = "adaptive", generate_audio = true } = body
  if (!isText(model)) return refused("MissingParameter", "model", "the model is missing")
  if (!/seedance|^ep-/.test(model)) {
    const message = `The model or endpoint ${model} does not exist or you do not have access to it.`
    return { refusal: arkError(404, { code: "InvalidEndpointOrModel.NotFound", message }) }
  }
  if (!Array.isArray(content) || content.length === 0)
    return refused("MissingParameter", "content", "content is missing")
  const wrong = wrongItem(content) ?? wrongField(body, model)
  if (wrong !== null) return refused("InvalidParameter", wrong, "the value is not valid")
  const prompt = content.flatMap((item: Body) => (typeof item.text === "string" ? [item.text] : [])).join("\n")
  return {
    prompt,
    seconds: lengthOf(body, model, prompt),
    asked: {
      model,
      resolution,
      ratio,
      generate_audio,
      pixels: pixels[String(resolution)],
      inFrames: body.frames !== undefined,
    },
  }
}

function refused(code: string, param: string, why: string): { readonly refusal: Reply } {
  const message = `The parameter \`${param}\` specified in the request is not valid: ${why}.`
  return { refusal: arkError(400, { code, message, param }) }
}

/** Where an item of the content is wrong. */
function wrongItem(content: readonly unknown[]): string | null {
  for (const [number, item] of content.entries()) {
    if (!isObject(item)) return `content[${number}]`
    const { type, text, image_url, role } = item
    if (type === "text" && !isText(text)) return `content[${number}].text`
    if (type === "image_url" && !(isObject(image_url) && isAddress(image_url.url)))
      return `content[${number}].image_url`
    if (type === "image_url" && !isNoneOr(role, roles)) return `content[${number}].role`
    if (!isNoneOr(type, ["text", "image_url", "video_url", "audio_url"])) return `content[${number}].type`
  }
  return null
}

function isAddress(url: unknown): boolean {
  return isPictureUrl(url) || (typeof url === "string" && url.startsWith("asset://"))
}

function wrongField({ resolution, ratio, duration, frames }: Body, model: string): string | null {
  const isFast = /fast|mini/.test(model)
  const isSecond = /seedance-2/.test(model)
  const sizes = isFast ? ["480p", "720p"] : ["480p", "720p", "1080p", ...(isSecond ? ["4k"] : [])]
  if (!isNoneOr(resolution, sizes)) return "resolution"
  if (!isNoneOr(ratio, ratios)) return "ratio"
  if (frames !== undefined && !isWhole(frames, 1, 1000)) return "frames"
  const [least, most] = rangeOf(model)
  const isChosen = duration === -1 && !model.includes("seedance-1-0")
  return duration === undefined || isChosen || isWhole(duration, least, most) ? null : "duration"
}

function rangeOf(model: string): readonly [least: number, most: number] {
  if (model.includes("seedance-1-0")) return [2, 12]
  if (model.includes("seedance-1-5")) return [4, 12]
  return model.startsWith("ep-") ? [2, 15] : [4, 15]
}

/** The oldest models also obey what stands at the end of the prompt, whatever the field says. */
function lengthOf({ duration, frames }: Body, model: string, prompt: string): number {
  const [, typed] = (model.includes("seedance-1-0") && /--dur(?:ation)?\s+(\d+)/.exec(prompt)) || []
  if (typed !== undefined) return Number(typed)
  if (typeof frames === "number") return frames / framesPerSecond
  return typeof duration === "number" && duration > 0 ? duration : usualSeconds
}
