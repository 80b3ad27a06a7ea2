import type { JsonObject, JsonValue } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import type { VideoAsk, VideoContext, VideoVendor } from "../../core/video-vendor.ts"
import { addressAt, at, errorText, isOk, listOf, reasonText, refText, textAt } from "../reply.ts"
import { fitSize, type SizeRule } from "../size-rule.ts"
import { type FrameRule, fitFrame, imageText, passedOn } from "./asking.ts"
import { anyDuration, type DurationRule, fitDuration, seconds, secondsFrom } from "./duration-rule.ts"
import { type NativeSizes, ruleFor } from "./native-sizes.ts"
import { finished, noVerdict, secondsAt, wordOf } from "./reading.ts"
import { notAccepted, type VendorError } from "./refusal.ts"

const services = "/api/v1/services/aigc"
const tasks = "/api/v1/tasks"

/** How a generation of models is asked: the older ones for pixels, with the picture in a field of its own; the newer for a ratio. */
type Manner = "older" | "keyframes" | "newer"

const paths: Readonly<Record<Manner, string>> = {
  older: `${services}/video-generation/video-synthesis`,
  keyframes: `${services}/image2video/video-synthesis`,
  newer: `${services}/video-generation/video-synthesis`,
}

const native: NativeSizes = {
  "480P": ["832x480", "624x624"],
  "720P": ["1280x720", "960x960", "1088x832"],
  "1080P": ["1920x1080", "1440x1440", "1632x1248"],
}
const pixels: SizeRule = { kind: "list", sizes: Object.values(native).flat().flatMap(bothWays) }
const ratios = ["16:9", "9:16", "1:1", "4:3", "3:4"]
const from720 = { "720P": 720, "1080P": 1080 }
const from480 = { "480P": 480, ...from720 }

interface ModelRow {
  readonly models: RegExp
  readonly manner: Manner
  readonly durations: DurationRule
  /** The resolutions it takes by name, where it is not asked for pixels. */
  readonly tiers: FrameRule["tiers"]
}

// The first row that fits a model's name counts.
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { models: /^wan.*kf2v/, manner: "keyframes", durations: seconds([5], 5), tiers: from480 },
  { models: /^wanx|^wan2\.[0-4]-/, manner: "older", durations: seconds([5], 5), tiers: from480 },
  { models: /^wan2\.5-/, manner: "older", durations: seconds([5, 10], 5), tiers: from480 },
  { models: /^wan2\.6-/, manner: "older", durations: secondsFrom(2, 15, 5), tiers: from480 },
  { models: /^wan/, manner: "newer", durations: secondsFrom(2, 15, 5), tiers: from720 },
  { models: /^/, manner: "newer", durations: anyDuration, tiers: from480 },
]

const words: ReadonlyMap<string, "queued" | "running" | "succeeded" | "failed" | "cancelled" | "unknown"> = new Map([
  ["pending", "queued"],
  ["suspended", "queued"],
  ["running", "running"],
  ["succeeded", "succeeded"],
  ["failed", "failed"],
  ["canceled", "cancelled"],
  ["unknown", "unknown"],
])

/** What an error amounts to, by the beginning of its code: an account in arrears is told by the status of a wrong request. */
// biome-ignore format: a table
const codes: readonly (readonly [RegExp, number])[] = [
  [/^InvalidApiKey/, 401],
  [/^Arrearage/, 402],
  [/^AccessDenied/, 403],
  [/^ModelNotFound/, 404],
  [/^Throttling/, 429],
  [/^(RequestTimeOut|InternalError\.Timeout)/i, 504],
  [/^InternalError/, 500],
]

/** What stands beside the prompt; all else is a parameter. */
const besidePrompt = ["negative_prompt", "audio_url", "first_frame_url", "last_frame_url", "media"]

/** Alibaba's Wan. Keys, models and hosts belong to one region, so no other host is ever called. */
export const dashscope: VideoVendor = {
  vendor: "dashscope",
  hosts: [],
  images: { byUrl: true, byData: true },

  submit(ask, context) {
    const row = models.find((candidate) => candidate.models.test(context.upstreamModel))!
    const duration = fitDuration(ask.duration, row.durations)
    return {
      seconds: duration,
      call: {
        method: "POST",
        url: context.baseUrl + paths[row.manner],
        // Without it the call is refused as a synchronous one.
        headers: { "x-dashscope-async": "enable" },
        body: {
          model: context.upstreamModel,
          input: inputOf(ask, row.manner, context),
          parameters: {
            ...passedOn(ask.extra, [...besidePrompt, ...(ask.size === null ? [] : ["resolution", "ratio"])]),
            ...sizeOf(ask, row),
            duration,
          },
        },
      },
    }
  },

  readSubmit(reply) {
    const task = textAt(reply.json, "output", "task_id")
    if (isOk(reply) && task !== null) return { kind: "accepted", ref: { task }, vendorId: task }
    return notAccepted(reply, errorOf(reply))
  },

  poll(ref, { baseUrl }) {
    return { method: "GET", url: taskUrl(baseUrl, ref) }
  },

  readPoll(reply) {
    const output = at(reply.json, "output")
    const word = wordOf(at(output, "task_status"))
    if (!isOk(reply) || word === null) return noVerdict(reply)
    const state = words.get(word)
    switch (state) {
      case "queued":
      case "running":
        return { kind: state }
      case "succeeded":
        return finished(addressAt(output, "video_url"), lengthOf(at(reply.json, "usage")))
      case "failed":
        return { kind: "failed", reason: failure(output) ?? "the job failed" }
      case "cancelled":
        return { kind: "failed", reason: failure(output) ?? "the job was cancelled at the vendor" }
      case "unknown":
        // Said of tasks that have expired, but also of those that have not got around yet.
        return { kind: "missing", why: "DashScope does not know the task: it has expired or is another region's" }
      default:
        return { kind: "running", oddWord: word }
    }
  },

  cancel(ref, { baseUrl }) {
    return { method: "POST", url: `${taskUrl(baseUrl, ref)}/cancel` }
  },
}

function inputOf({ prompt, image, extra }: VideoAsk, manner: Manner, { settings }: VideoContext): JsonObject {
  const others = Object.fromEntries(Object.entries(extra).filter(([name]) => besidePrompt.includes(name)))
  const input = { ...others, prompt }
  if (image === null) return input
  const picture = imageText(image)
  if (manner === "keyframes") return { ...input, first_frame_url: picture }
  if (manner === "older" || settings.wan_first_frame === "img_url") return { ...input, img_url: picture }
  return { ...input, media: [{ type: "first_frame", url: picture }, ...listOf(extra.media)] }
}

/** A picture decides on the ratio, so that only the resolution of a size can be said beside one. */
function sizeOf({ size, image }: VideoAsk, { manner, tiers }: ModelRow): JsonObject {
  if (size === null) return {}
  if (manner === "older" && image === null) {
    fitSize(size, pixels)
    return { size: `${size.width}*${size.height}` }
  }
  const rule = image === null && manner === "newer" ? { ratios, tiers } : { tiers }
  const { tier, ratio } = fitFrame(size, ruleFor(size, rule, native))
  return { resolution: tier, ...(ratio === null ? {} : { ratio }) }
}

/** The second is what is billed, which for some models counts the seconds of what they were given as well. */
function lengthOf(usage: JsonValue | undefined): number | null {
  return secondsAt(usage, "output_video_duration") ?? secondsAt(usage, "duration") ?? secondsAt(usage, "video_duration")
}

function errorOf(reply: Reply): VendorError | null {
  const [code, message] = [textAt(reply.json, "code"), failure(reply.json)]
  if (code === null || message === null) return null
  // An error in a 200 is the request's unless its code says otherwise.
  const status = codes.find(([pattern]) => pattern.test(code))?.[1] ?? (isOk(reply) ? 400 : undefined)
  return { status, message }
}

function failure(error: JsonValue | undefined): string | null {
  const [code, text] = [textAt(error, "code"), errorText(error)]
  if (code === null) return text
  const moderated = /^(DataInspectionFailed|IPInfringementSuspect)/.test(code)
  const prefix = moderated ? "refused by the vendor's moderation: " : ""
  return reasonText(`${prefix}${text ?? "the vendor gave no reason"} (${code})`)
}

function bothWays(size: string): readonly string[] {
  const [width, height] = size.split("x")
  return width === height ? [size] : [size, `${height}x${width}`]
}

function taskUrl(baseUrl: string, ref: JsonValue): string {
  return `${baseUrl}${tasks}/${encodeURIComponent(refText(ref, "task"))}`
}
