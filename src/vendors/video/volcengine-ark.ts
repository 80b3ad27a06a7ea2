import type { JsonObject, JsonValue } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import type { VideoAsk, VideoVendor } from "../../core/video-vendor.ts"
import { addressAt, at, errorText, isOk, reasonText, refText, textAt } from "../reply.ts"
import { type FrameRule, fitFrame, imageText, passedOn } from "./asking.ts"
import { anyDuration, type DurationRule, fitDuration, secondsFrom } from "./duration-rule.ts"
import { type NativeSizes, ruleFor } from "./native-sizes.ts"
import { finished, noVerdict, secondsAt, wordOf } from "./reading.ts"
import { notAccepted, type VendorError } from "./refusal.ts"

const tasks = "/contents/generations/tasks"

const ratios = ["16:9", "4:3", "1:1", "3:4", "9:16", "21:9"]
const upTo720p = { "480p": 480, "720p": 720 }
const upTo1080p = { ...upTo720p, "1080p": 1080 }
const upTo4k = { ...upTo1080p, "4k": 2160 }

/** The frames that are made in truth. */
const native: NativeSizes = {
  "480p": ["864x480", "864x496", "736x544", "752x560", "640x640", "960x416", "992x432"],
  "720p": ["1280x720", "1248x704", "1112x834", "1120x832", "960x960", "1470x630", "1504x640"],
  "1080p": ["1920x1080", "1920x1088", "1664x1248", "1440x1440", "2206x946", "2176x928"],
}

interface ModelRow {
  readonly models: RegExp
  readonly durations: DurationRule
  readonly resolutions: FrameRule["tiers"]
}

// The first row that fits a model's name counts. Of the names of endpoints (`ep-…`), which say nothing, the vendor is the judge.
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { models: /seedance-1-0-/, durations: secondsFrom(2, 12, 5), resolutions: upTo1080p },
  { models: /seedance-1-5-/, durations: secondsFrom(4, 12, 5), resolutions: upTo1080p },
  { models: /seedance-2-0-fast-/, durations: secondsFrom(4, 15, 5), resolutions: upTo720p },
  { models: /seedance-2-0-mini-/, durations: secondsFrom(4, 15, 5), resolutions: upTo1080p }, // 1080p: sources disagree
  { models: /seedance-2-0-/, durations: secondsFrom(4, 15, 5), resolutions: upTo4k },
  { models: /^/, durations: anyDuration, resolutions: upTo4k },
]

const words: ReadonlyMap<string, "queued" | "running" | "succeeded" | "failed" | "cancelled" | "expired"> = new Map([
  ["queued", "queued"],
  ["pending", "queued"],
  ["running", "running"],
  ["processing", "running"],
  ["succeeded", "succeeded"],
  ["failed", "failed"],
  ["cancelled", "cancelled"],
  ["expired", "expired"],
])

/** What an error amounts to where its HTTP status does not say so, by the beginning of its code. */
// biome-ignore format: a table
const codes: readonly (readonly [RegExp, number])[] = [
  [/^Authentication/, 401],
  [/^AccountOverdue/, 402],
  [/^(ModelNotOpen|InvalidEndpointOrModel)/, 404],
  [/^(RateLimitExceeded|QuotaExceeded|ServerOverloaded)/, 429],
]

/** It sends results past the gateway; a count of frames would take the place of the length that was admitted. */
const held = ["callback_url", "frames"]

/**
 * Older models read options in the prompt's own text, among them the length that is paid for. The newest do not, and their
 * prompts are left alone; the name of an endpoint does not tell which model is behind it.
 */
const withoutTextOptions = /seedance-[2-9]/
const textOptions = /\s*--(dur|duration|frames|fps|framepersecond|framespersecond|rs|resolution|rt|ratio)(\s+|=)\S+/gi

/** ByteDance's Seedance on Volcengine Ark, and on BytePlus ModelArk by its base URL. */
export const volcengineArk: VideoVendor = {
  vendor: "volcengine-ark",
  hosts: [],
  images: { byUrl: true, byData: true },

  submit(ask, { baseUrl, upstreamModel }) {
    const row = models.find((candidate) => candidate.models.test(upstreamModel))!
    const duration = fitDuration(ask.duration, row.durations)
    return {
      seconds: duration,
      call: {
        method: "POST",
        url: baseUrl + tasks,
        body: {
          ...passedOn(ask.extra, held),
          model: upstreamModel,
          content: contentOf(ask, upstreamModel),
          ...sizeOf(ask.size, row),
          duration,
        },
      },
    }
  },

  readSubmit(reply) {
    const task = textAt(reply.json, "id")
    if (isOk(reply) && task !== null) return { kind: "accepted", ref: { task }, vendorId: task }
    return notAccepted(reply, errorOf(reply))
  },

  poll(ref, { baseUrl }) {
    return { method: "GET", url: taskUrl(baseUrl, ref) }
  },

  readPoll(reply) {
    const word = wordOf(at(reply.json, "status"))
    if (!isOk(reply) || word === null) return noVerdict(reply)
    const state = words.get(word)
    switch (state) {
      case "queued":
      case "running":
        return { kind: state }
      case "succeeded":
        return finished(addressAt(reply.json, "content", "video_url"), lengthOf(reply.json))
      case "failed":
        return { kind: "failed", reason: failure(at(reply.json, "error")) ?? "the job failed" }
      case "cancelled":
        return { kind: "failed", reason: failure(at(reply.json, "error")) ?? "the job was cancelled at the vendor" }
      case "expired":
        return { kind: "failed", reason: failure(at(reply.json, "error")) ?? "the job expired at the vendor" }
      default:
        return { kind: "running", oddWord: word }
    }
  },

  /** Cancels a job that waits; of one that is finished it deletes the record. */
  cancel(ref, { baseUrl }) {
    return { method: "DELETE", url: taskUrl(baseUrl, ref) }
  },
}

function contentOf({ prompt, image }: VideoAsk, model: string): readonly JsonObject[] {
  const text = withoutTextOptions.test(model) ? prompt : prompt.replace(textOptions, "")
  const words = { type: "text", text }
  if (image === null) return [words]
  return [words, { type: "image_url", image_url: { url: imageText(image) }, role: "first_frame" }]
}

function sizeOf(size: VideoAsk["size"], { resolutions }: ModelRow): JsonObject {
  if (size === null) return {}
  const { ratio, tier } = fitFrame(size, ruleFor(size, { ratios, tiers: resolutions }, native))
  return { resolution: tier, ratio }
}

/** Said in seconds, or where a job was asked for in frames, by these. */
function lengthOf(json: JsonValue): number | null {
  const [frames, pace] = [secondsAt(json, "frames"), secondsAt(json, "framespersecond")]
  return secondsAt(json, "duration") ?? (frames === null || pace === null ? null : frames / pace)
}

function errorOf(reply: Reply): VendorError | null {
  const error = at(reply.json, "error")
  const [code, message] = [textAt(error, "code"), failure(error)]
  if (code === null || message === null) return null
  // An error in a 200 is the request's unless its code says otherwise.
  const status = codes.find(([pattern]) => pattern.test(code))?.[1] ?? (isOk(reply) ? 400 : undefined)
  return { status, message }
}

function failure(error: JsonValue | undefined): string | null {
  const code = textAt(error, "code")
  const text = errorText(error) ?? (code === null ? null : "the vendor gave no reason")
  if (text === null || code === null) return text
  const moderated = /Sensitive/.test(code) ? "refused by the vendor's moderation: " : ""
  return reasonText(`${moderated}${text} (${code})`)
}

function taskUrl(baseUrl: string, ref: JsonValue): string {
  return `${baseUrl}${tasks}/${encodeURIComponent(refText(ref, "task"))}`
}
