import { isObject } from "../../../src/core/json.ts"
import type { VideoAsk } from "../../memory.ts"
import type { Reply } from "../../wire/reply.ts"
import { dashscopeError } from "../image-jobs/dashscope-errors.ts"
import { pathOf, type VendorRequest } from "../protocol.ts"
import { type Body, bodyOf, isNoneOr, isPictureUrl, isText, isWhole, partOf } from "./fields.ts"

const usualSeconds = 5
const ratios = ["16:9", "9:16", "1:1", "4:3", "3:4"]
const tiers = ["480P", "720P", "1080P"]
/** What the older text models can make, by tier. */
const sizes: Readonly<Record<string, number>> = Object.fromEntries(
  Object.entries({
    480: ["832*480", "480*832", "624*624"],
    720: ["1280*720", "720*1280", "960*960", "1088*832", "832*1088"],
    1080: ["1920*1080", "1080*1920", "1440*1440", "1632*1248", "1248*1632"],
  }).flatMap(([tier, all]) => all.map((size) => [size, Number(tier)])),
)

/** Reads a submit, or refuses it as DashScope does. */
export function readDashscopeAsk(request: VendorRequest): VideoAsk | { readonly refusal: Reply } {
  const body = bodyOf(request)
  if (body === null || !isText(body.model)) return refused("Required parameter(s) missing or invalid: model")
  const { model } = body
  if (!/^wanx?\d/.test(model)) return { refusal: dashscopeError(404) }
  // Each kind of model answers at one address only.
  if (/kf2v/.test(model) !== pathOf(request).includes("/image2video/")) return refused("url error, please check url!")
  const [input, parameters] = [partOf(body, "input"), partOf(body, "parameters")]
  const problem = inputProblem(input, model) ?? parameterProblem(parameters, model)
  if (problem !== null) return refused(problem)
  const { duration = usualSeconds, size, resolution } = parameters
  const tier = typeof size === "string" ? sizes[size] : Number.parseInt(String(resolution ?? "720P"), 10)
  return { prompt: String(input.prompt ?? ""), seconds: Number(duration), asked: { model, size, tier } }
}

function refused(message: string): { readonly refusal: Reply } {
  return { refusal: dashscopeError(400, message) }
}

function isNew(model: string): boolean {
  return /^wan(?:2\.[7-9]|[3-9])/.test(model)
}

function inputProblem({ prompt, img_url, media, first_frame_url, last_frame_url }: Body, model: string): string | null {
  if (model.includes("t2v") && !isText(prompt)) return "Required parameter(s) missing or invalid: input.prompt"
  if (model.includes("kf2v")) {
    return [first_frame_url, last_frame_url].some(isPictureUrl) ? null : "Field required: input.first_frame_url"
  }
  if (!model.includes("i2v")) return null
  if (!isNew(model)) return isPictureUrl(img_url) ? null : "Field required: input.img_url"
  const frames = Array.isArray(media) ? media.filter(isObject) : []
  return frames.some(({ type, url }) => type === "first_frame" && isPictureUrl(url))
    ? null
    : "Field required: input.media"
}

function parameterProblem({ size, resolution, ratio, duration }: Body, model: string): string | null {
  if (duration !== undefined && !isLength(duration, model)) return `duration is not valid: ${JSON.stringify(duration)}`
  if (!isNoneOr(resolution, tiers)) return `resolution must be one of ${tiers.join(", ")}`
  if (!isNoneOr(ratio, ratios)) return `ratio must be one of ${ratios.join(", ")}`
  if (size === undefined) return null
  if (isNew(model) || /i2v|kf2v/.test(model)) return "size is not supported by this model"
  return typeof size === "string" && size in sizes ? null : `size must match one of ${Object.keys(sizes).join(", ")}`
}

function isLength(duration: unknown, model: string): boolean {
  if (/^wan2\.5/.test(model)) return isNoneOr(duration, [5, 10])
  return /^wanx?2\.[1-4]/.test(model) ? duration === usualSeconds : isWhole(duration, 2, 15)
}
