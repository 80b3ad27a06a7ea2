import type { JsonObject, JsonValue } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import type { VideoAsk, VideoProgress, VideoVendor } from "../../core/video-vendor.ts"
import { addressAt, at, errorText, isOk, refText, textAt, unreadable } from "../reply.ts"
import { ratios } from "../size-rule.ts"
import { imageText, passedOn } from "./asking.ts"
import { anyDuration, type DurationRule, fitDuration, seconds, secondsFrom } from "./duration-rule.ts"
import { finished, noVerdict, wordOf } from "./reading.ts"
import { notAccepted } from "./refusal.ts"
import { anyFrame, frames, type SizeFields, sizeFields } from "./size-fields.ts"

interface ModelRow {
  readonly models: RegExp
  readonly durations: DurationRule
  readonly fromText: SizeFields
  readonly fromPicture: SizeFields
  readonly picture: "image" | "start_image" | "first_frame_image"
}

const usual = { durations: anyDuration, fromText: anyFrame, fromPicture: anyFrame, picture: "image" } as const
const sized = (rule: SizeFields) => ({ fromText: rule, fromPicture: rule })

/*
 * Every model has its own inputs. These are known by their published schemas; another one gets the usual names, and Replicate judges.
 * The first row that fits counts.
 */
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { ...usual, models: /^google\/veo-3/, durations: seconds([4, 6, 8], 8), ...sized(frames("720p 1080p", "16:9 9:16")) },
  { ...usual, models: /^bytedance\/seedance-1-/, durations: secondsFrom(2, 12, 5), ...sized(frames("480p 720p 1080p", "16:9 4:3 1:1 3:4 9:16 21:9")) },
  // A picture decides on the shape, and the resolution is the model's or its mode's.
  { ...usual, models: /^kwaivgi\/kling-v[12]\b/, durations: seconds([5, 10], 5), fromText: ratios("16:9 9:16 1:1"), fromPicture: null, picture: "start_image" },
  { ...usual, models: /^kwaivgi\//, picture: "start_image" },
  { ...usual, models: /^minimax\//, durations: seconds([6, 10], 6), picture: "first_frame_image" },
  { ...usual, models: /^vidu\/q3/, durations: secondsFrom(1, 16, 5), fromPicture: frames("540p 720p 1080p"), picture: "start_image" },
  { ...usual, models: /^vidu\//, picture: "start_image" },
  { ...usual, models: /^wan-video\/wan-2\.7/, durations: secondsFrom(2, 15, 5) },
  { ...usual, models: /^lightricks\/ltx-2/, durations: secondsFrom(1, 60, 6) },
  { ...usual, models: /^/ },
]

/** Only these words are verdicts; a prediction that is still running may already show a part of its output. */
const statuses: ReadonlyMap<string, "queued" | "running" | "succeeded" | "failed"> = new Map([
  ["starting", "queued"],
  ["processing", "running"],
  ["succeeded", "succeeded"],
  ["failed", "failed"],
  ["canceled", "failed"],
  ["aborted", "failed"],
])

/** Kept from callers: they go before the length, multiply the videos or send results elsewhere. */
const never = ["num_frames", "num_outputs", "webhook", "webhook_completed", "webhook_events_filter"]

/** Where models put their video if their output is more than its address. */
const outputNames = ["video", "videos", "url", "output", "file"] as const

export const replicate: VideoVendor = {
  vendor: "replicate",
  hosts: ["api.replicate.com"],
  images: { byUrl: true, byData: true },

  submit(ask, { baseUrl, upstreamModel }) {
    const row = models.find((candidate) => candidate.models.test(upstreamModel))!
    const duration = fitDuration(ask.duration, row.durations)
    const version = versionOf(upstreamModel)
    const path = version === null ? `/models/${upstreamModel.split("/").map(encodeURIComponent).join("/")}` : ""
    return {
      seconds: duration,
      call: {
        method: "POST",
        url: `${baseUrl}${path}/predictions`,
        body: { ...(version === null ? {} : { version }), input: inputOf(ask, duration, row) },
      },
    }
  },

  readSubmit(reply) {
    const id = textAt(reply.json, "id")
    if (!isOk(reply) || id === null) return notAccepted(reply, errorOf(reply))
    const [get, cancel] = [addressAt(reply.json, "urls", "get"), addressAt(reply.json, "urls", "cancel")]
    return { kind: "accepted", ref: { id, get, cancel }, vendorId: id }
  },

  poll(ref, { baseUrl }) {
    return { method: "GET", url: predictionUrl(ref, baseUrl) }
  },

  readPoll(reply) {
    if (!isOk(reply)) return noVerdict(reply)
    const word = wordOf(at(reply.json, "status"))
    // Others than Replicate speak of a status too; a prediction has an id besides.
    if (word === null || textAt(reply.json, "id") === null) return unreadable(reply)
    switch (statuses.get(word)) {
      case "queued":
        return { kind: "queued" }
      case "running":
        return { kind: "running" }
      case "succeeded":
        return resultOf(reply.json)
      case "failed":
        return { kind: "failed", reason: errorText(reply.json) ?? `the prediction ended as "${word}"` }
      default:
        return { kind: "running", oddWord: word }
    }
  },

  cancel(ref, { baseUrl }) {
    return { method: "POST", url: textAt(ref, "cancel") ?? `${predictionUrl(ref, baseUrl)}/cancel` }
  },
}

function inputOf(ask: VideoAsk, duration: number, row: ModelRow): JsonObject {
  return {
    ...passedOn(ask.extra, never),
    prompt: ask.prompt,
    ...(ask.image === null ? {} : { [row.picture]: imageText(ask.image) }),
    duration,
    ...sizeFields(ask.size, ask.image === null ? row.fromText : row.fromPicture),
  }
}

/** A community model is run by its version: `owner/name:version`, or the version alone. */
function versionOf(model: string): string | null {
  const [name, version] = model.split(":")
  if (version !== undefined) return version
  return name!.includes("/") ? null : name!
}

function predictionUrl(ref: JsonValue, baseUrl: string): string {
  return textAt(ref, "get") ?? `${baseUrl}/predictions/${encodeURIComponent(refText(ref, "id"))}`
}

/** The times in `metrics` are those of the machine: the length of a video is not among them. */
function resultOf(json: JsonValue): VideoProgress {
  const url = addressIn(at(json, "output"))
  if (url === null && at(json, "data_removed") === true) {
    return { kind: "failed", reason: "the result has expired: the vendor has removed it" }
  }
  return finished(url, null)
}

/** The output has the model's own shape: an address, a list of them, or an object around either. */
function addressIn(output: JsonValue | undefined, depth = 4): string | null {
  if (depth === 0) return null
  const within = Array.isArray(output) ? output : outputNames.map((name) => at(output, name))
  return (
    addressAt({ output }, "output") ??
    within.map((part) => addressIn(part, depth - 1)).find((address) => address !== null) ??
    null
  )
}

/** An error that Replicate itself speaks of repeats its status. */
function errorOf(reply: Reply) {
  const message = errorText(reply.json)
  return message !== null && at(reply.json, "status") === reply.status ? { message } : null
}
