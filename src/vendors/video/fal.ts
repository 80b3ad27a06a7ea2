import type { JsonObject, JsonValue } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import type { VideoAsk, VideoProgress, VideoVendor } from "../../core/video-vendor.ts"
import { addressAt, at, errorText, isOk, listOf, reasonText, refText, textAt, unreadable } from "../reply.ts"
import { ratios } from "../size-rule.ts"
import { imageText, needsImage, passedOn } from "./asking.ts"
import { anyDuration, type DurationRule, seconds, secondsFrom } from "./duration-rule.ts"
import { finished, noVerdict, secondsAt, wordOf } from "./reading.ts"
import { notAccepted } from "./refusal.ts"
import { anyFrame, fitLength, frames, type SizeFields, sizeFields } from "./size-fields.ts"

interface ModelRow {
  readonly models: RegExp
  /** Null: the model takes no length. */
  readonly durations: DurationRule | null
  /** How eight seconds are written; or how many frames a second has, where frames are counted instead. */
  readonly written: "8s" | "8" | 8 | { readonly framesPerSecond: number }
  readonly fromText: SizeFields
  readonly fromPicture: SizeFields
  readonly picture: "image_url" | "start_image_url"
}

const usual = { written: "8", picture: "image_url" } as const
const sized = (rule: SizeFields) => ({ fromText: rule, fromPicture: rule })

const seedanceShapes = "21:9 16:9 4:3 1:1 3:4 9:16"
const pixverseTiers = "360p 540p 720p 1080p"
const kling = {
  ...usual,
  durations: seconds([5, 10], 5),
  fromText: ratios("16:9 9:16 1:1"),
  fromPicture: null,
} as const
const pixverse = {
  ...usual,
  fromText: frames(pixverseTiers, "16:9 4:3 1:1 3:4 9:16"),
  fromPicture: frames(pixverseTiers),
} as const
const wan = sized(frames("480p 580p 720p", "16:9 9:16 1:1"))

/*
 * Every model has its own inputs. These are known by their published schemas; another one gets the usual names, and fal judges.
 * The first row that fits counts.
 */
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { ...usual, models: /^fal-ai\/veo2\b/, durations: secondsFrom(5, 8, 5), written: "8s", fromText: ratios("16:9 9:16 1:1"), fromPicture: null },
  { ...usual, models: /^fal-ai\/veo3(\.1)?(\/|$)/, durations: seconds([4, 6, 8], 8), written: "8s", ...sized(frames("720p 1080p", "16:9 9:16")) },
  { ...usual, models: /^fal-ai\/luma-dream-machine\/ray-2/, durations: seconds([5, 9], 5), written: "8s",
    ...sized(frames("540p 720p 1080p", "16:9 9:16 4:3 3:4 21:9 9:21")) },
  { ...kling, models: /^fal-ai\/kling-video\/v3\//, durations: secondsFrom(3, 15, 5), picture: "start_image_url" },
  { ...kling, models: /^fal-ai\/kling-video\/v2\.6\//, picture: "start_image_url" },
  { ...kling, models: /^fal-ai\/kling-video\/v[12]/ },
  { ...usual, models: /^fal-ai\/minimax\/hailuo-02\/standard\//, durations: seconds([6, 10], 6), fromText: null, fromPicture: frames("512P 768P") },
  { ...usual, models: /^fal-ai\/minimax\/hailuo-/, durations: seconds([6, 10], 6), ...sized(null) },
  { ...usual, models: /^fal-ai\/minimax(-video|\/video-01)/, durations: null, ...sized(null) },
  { ...usual, models: /^(fal-ai\/)?bytedance\/seedance-2/, durations: secondsFrom(4, 15, 5), ...sized(frames("480p 720p", seedanceShapes)) },
  { ...usual, models: /^fal-ai\/bytedance\/seedance\/v1\.5\//, durations: secondsFrom(4, 12, 5), ...sized(frames("480p 720p 1080p", seedanceShapes)) },
  { ...usual, models: /^fal-ai\/bytedance\/seedance\/v1\//, durations: secondsFrom(2, 12, 5), ...sized(frames("480p 720p 1080p", seedanceShapes)) },
  { ...pixverse, models: /^fal-ai\/pixverse\/.*\/fast$/, durations: null },
  { ...pixverse, models: /^fal-ai\/pixverse\/v(3\.5|4|4\.5|5)\//, durations: seconds([5, 8], 5) },
  { ...pixverse, models: /^fal-ai\/pixverse\//, durations: anyDuration },
  { ...usual, models: /^fal-ai\/pika\/v2\.2\//, durations: seconds([5, 10], 5),
    fromText: frames("720p 1080p", "16:9 9:16 1:1 4:5 5:4 3:2 2:3"), fromPicture: frames("720p 1080p") },
  // Counted in frames, of which there may be 17 to 161; the models of five billion parameters are at home at a higher rate.
  { ...usual, models: /^fal-ai\/wan\/v2\.2-a14b\/.*turbo/, durations: null, ...wan },
  { ...usual, models: /^fal-ai\/wan\/v2\.2-a14b\//, durations: secondsFrom(1, 10, 5), written: { framesPerSecond: 16 }, ...wan },
  { ...usual, models: /^fal-ai\/wan\/v2\.2-5b\//, durations: secondsFrom(1, 6, 5), written: { framesPerSecond: 24 }, ...wan },
  { ...usual, models: /^fal-ai\/wan-25-preview\//, durations: seconds([5, 10], 5), ...sized(anyFrame) },
  { ...usual, models: /^(fal-ai\/)?wan\/v2\.[6-9]\//, durations: anyDuration, ...sized(anyFrame) },
  { ...usual, models: /^/, durations: anyDuration, written: 8, ...sized(anyFrame) },
]

/** There is no word for failure: a job that is completed may have failed, and only its result tells. */
const statuses: ReadonlyMap<string, "queued" | "running" | "completed"> = new Map([
  ["in_queue", "queued"],
  ["in_progress", "running"],
  ["completed", "completed"],
])

/** Statuses that are about the asking, not about the job. */
const aboutTheAsking: ReadonlySet<number> = new Set([401, 403, 404, 408, 425, 429])

const stillRunning = /still in progress/i

/** Kept from callers: they go before the length or the prompt, multiply the videos, send results elsewhere or put them into the reply. */
// biome-ignore format: a list
const never = ["num_frames", "number_of_frames", "multi_prompt", "num_videos", "num_samples", "fal_webhook", "webhook_url", "sync_mode"]

/** fal's queue. The addresses it returns are used as given: they leave out parts of the model's path. */
export const fal: VideoVendor = {
  vendor: "fal",
  hosts: ["queue.fal.run"],
  images: { byUrl: true, byData: true },

  submit(ask, { baseUrl, upstreamModel }) {
    const row = models.find((candidate) => candidate.models.test(upstreamModel))!
    const length = fitLength(ask.duration, row.durations)
    return {
      seconds: length,
      call: {
        method: "POST",
        url: `${baseUrl}/${pathOf(upstreamModel, ask.image)}`,
        body: {
          ...passedOn(ask.extra, never),
          prompt: ask.prompt,
          ...(ask.image === null ? {} : { [row.picture]: imageText(ask.image) }),
          ...(length === null ? {} : lengthFields(length, row.written)),
          ...sizeFields(ask.size, ask.image === null ? row.fromText : row.fromPicture),
        },
      },
    }
  },

  readSubmit(reply) {
    const id = textAt(reply.json, "request_id")
    if (!isOk(reply) || id === null) return notAccepted(reply, errorOf(reply))
    const [status, result] = [addressAt(reply.json, "status_url"), addressAt(reply.json, "response_url")]
    const cancel = addressAt(reply.json, "cancel_url")
    return { kind: "accepted", ref: { id, status, result, cancel, stage: "status" }, vendorId: id }
  },

  poll(ref, { baseUrl, upstreamModel }) {
    const url =
      textAt(ref, "stage") === "result"
        ? (textAt(ref, "result") ?? requestUrl(ref, baseUrl, upstreamModel))
        : (textAt(ref, "status") ?? `${requestUrl(ref, baseUrl, upstreamModel)}/status`)
    return { method: "GET", url }
  },

  readPoll(reply, ref) {
    if (textAt(ref, "stage") === "result") return readResult(reply)
    const word = wordOf(at(reply.json, "status"))
    if (!isOk(reply) || word === null) return noVerdict(reply)
    switch (statuses.get(word)) {
      case "queued":
        return { kind: "queued" }
      case "running":
        return { kind: "running" }
      case "completed":
        return completed(reply.json, ref)
      default:
        return { kind: "running", oddWord: word }
    }
  },

  cancel(ref, { baseUrl, upstreamModel }) {
    return { method: "PUT", url: textAt(ref, "cancel") ?? `${requestUrl(ref, baseUrl, upstreamModel)}/cancel` }
  },
}

/** Going on from a picture is another model, beside the one that begins with text or below it. */
function pathOf(model: string, image: VideoAsk["image"]): string {
  const fromPicture = /(^|[/-])(image-to-video|i2v)([/-]|$)/.test(model)
  if (fromPicture) needsImage(image)
  return encodedPath(image === null || fromPicture ? model : pictureModel(model))
}

function pictureModel(model: string): string {
  const beside = model.replace("text-to-video", "image-to-video").replace(/-t2v(?=[/-]|$)/, "-i2v")
  return beside !== model || /-to-video(\/|$)/.test(model) ? beside : `${model}/image-to-video`
}

function encodedPath(model: string): string {
  return model.split("/").map(encodeURIComponent).join("/")
}

function lengthFields(length: number, written: ModelRow["written"]): JsonObject {
  if (typeof written === "object") {
    // One more than the length has, since the first frame takes no time.
    const { framesPerSecond } = written
    return { num_frames: length * framesPerSecond + 1, frames_per_second: framesPerSecond }
  }
  return { duration: written === 8 ? length : written.replace("8", String(length)) }
}

function completed(json: JsonValue, ref: JsonValue): VideoProgress {
  const error = textAt(json, "error")
  if (error !== null) return { kind: "failed", reason: reasonText(error) }
  return { kind: "continue", ref: { ...(ref as JsonObject), stage: "result" } }
}

/** The job's error comes as the HTTP status of its result; trouble on the way may have the same statuses, but not fal's words. */
function readResult(reply: Reply): VideoProgress {
  if (isOk(reply)) return readVideo(reply)
  const error = errorText(reply.json)
  if (reply.status === 400 && error !== null && stillRunning.test(error)) return { kind: "running" }
  const speaks = reply.status < 500 ? error !== null && !aboutTheAsking.has(reply.status) : errorOf(reply) !== null
  return reply.status >= 400 && speaks ? { kind: "failed", reason: error ?? `HTTP ${reply.status}` } : noVerdict(reply)
}

/** A result is whatever the model returns: one that has no place for a video is nobody's verdict. */
function readVideo(reply: Reply): VideoProgress {
  const [one, list] = [at(reply.json, "video"), at(reply.json, "videos")]
  if (one === undefined && list === undefined) return unreadable(reply)
  const video = one ?? listOf(list)[0]
  return finished(addressAt(video, "url") ?? addressAt({ video }, "video"), secondsAt(video, "duration"))
}

/** An error that fal itself speaks of: it names its type. */
function errorOf(reply: Reply) {
  const type = reply.headers["x-fal-error-type"] ?? textAt(reply.json, "error_type")
  return type === null ? null : { message: errorText(reply.json) ?? reasonText(type) }
}

/** Where a job is found if its addresses were not given: below the first two parts of the model's name. */
function requestUrl(ref: JsonValue, baseUrl: string, model: string): string {
  const app = encodedPath(model.split("/").slice(0, 2).join("/"))
  return `${baseUrl}/${app}/requests/${encodeURIComponent(refText(ref, "id"))}`
}
