import { GatewayError } from "../../core/errors.ts"
import { isObject, type JsonObject, type JsonValue } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import type { VideoAsk, VideoProgress, VideoVendor } from "../../core/video-vendor.ts"
import { addressAt, at, errorText, isOk, listOf, reasonText, refText, textAt, unreadable } from "../reply.ts"
import { type Frame, fitFrame, passedOn } from "./asking.ts"
import { type DurationRule, fitDuration, seconds, secondsFrom } from "./duration-rule.ts"
import { finished, noVerdict } from "./reading.ts"
import { notAccepted, type VendorError } from "./refusal.ts"

const frames = { ratios: ["16:9", "9:16"], tiers: { "720p": 720, "1080p": 1080, "4k": 2160 } }

// The first row that fits a model's name counts; of what is not known yet, the vendor is the judge.
// biome-ignore format: a table
const models: readonly { readonly models: RegExp; readonly durations: DurationRule; readonly sharp: DurationRule }[] = [
  { models: /^veo-3/, durations: seconds([4, 6, 8], 8), sharp: seconds([8], 8) },
  { models: /^veo-2/, durations: secondsFrom(5, 8, 8), sharp: secondsFrom(5, 8, 8) },
  { models: /^/, durations: secondsFrom(1, 60, 8), sharp: secondsFrom(1, 60, 8) },
]

/** Pictures and clips stand beside the prompt, all else among the parameters. */
const besidePrompt = ["lastFrame", "referenceImages", "video"]

/** Some send results or news past the gateway; the others only Google's other platform takes, here they are errors. */
// biome-ignore format: a list
const held = [
  "webhookConfig", "outputGcsUri", "pubsubTopic",
  "seed", "generateAudio", "fps", "compressionQuality", "resizeMode", "mask",
]

/** Every part of an operation's name; it becomes a path, and a reply must not choose that freely. */
const operationName = /^(?!.*(^|\/)\.+(\/|$))[\w.-]+(\/[\w.-]+)+$/

/** Google's Veo on the Gemini API. A job's id is the whole name of its operation, slashes included. */
export const gemini: VideoVendor = {
  vendor: "gemini",
  hosts: ["generativelanguage.googleapis.com"],
  images: { byUrl: false, byData: true },

  submit(ask, { baseUrl, upstreamModel }) {
    const row = models.find((candidate) => candidate.models.test(upstreamModel))!
    const frame = ask.size === null ? null : fitFrame(ask.size, frames)
    const durationSeconds = fitDuration(ask.duration, needsFullLength(ask, frame) ? row.sharp : row.durations)
    return {
      seconds: durationSeconds,
      call: {
        method: "POST",
        url: `${baseUrl}/models/${encodeURIComponent(upstreamModel)}:predictLongRunning`,
        body: {
          instances: [{ ...extrasBesidePrompt(ask), prompt: ask.prompt, ...pictureOf(ask) }],
          parameters: {
            ...passedOn(ask.extra, [...held, ...besidePrompt]),
            ...(frame === null ? {} : { aspectRatio: frame.ratio, resolution: frame.tier }),
            durationSeconds,
            // Each sample is a video that is paid for.
            sampleCount: 1,
          },
        },
      },
    }
  },

  readSubmit(reply) {
    const name = textAt(reply.json, "name")
    if (isOk(reply) && name !== null && operationName.test(name)) {
      return { kind: "accepted", ref: { name }, vendorId: name }
    }
    return notAccepted(reply, errorOf(reply))
  },

  poll(ref, { baseUrl }) {
    return { method: "GET", url: `${baseUrl}/${refText(ref, "name")}` }
  },

  readPoll(reply) {
    if (!isOk(reply)) return noVerdict(reply)
    if (at(reply.json, "done") !== true) {
      return textAt(reply.json, "name") === null ? unreadable(reply) : { kind: "running" }
    }
    const error = at(reply.json, "error")
    if (isObject(error)) return { kind: "failed", reason: errorText(error) ?? "the job failed" }
    const response = at(reply.json, "response")
    return isObject(response) ? verdict(at(response, "generateVideoResponse")) : unreadable(reply)
  },
}

/** The sharper resolutions, and frames to go to or to be like, are made in full length only. */
function needsFullLength({ extra }: VideoAsk, frame: Frame | null): boolean {
  return (
    (frame !== null && frame.tier !== "720p") ||
    (extra.lastFrame ?? null) !== null ||
    (extra.referenceImages ?? null) !== null
  )
}

function extrasBesidePrompt({ extra }: VideoAsk): JsonObject {
  return Object.fromEntries(Object.entries(extra).filter(([name]) => besidePrompt.includes(name)))
}

function pictureOf({ image }: VideoAsk): JsonObject {
  if (image === null) return {}
  if (!("url" in image)) return { image: { bytesBase64Encoded: image.base64, mimeType: image.mediaType } }
  throw new GatewayError("internal_error", "internal error", { internal: "Veo takes no address of a picture" })
}

/** The length is not told. A job that the filters stopped is done as well, with reasons in the place of a video. */
function verdict(answer: JsonValue | undefined): VideoProgress {
  const video = at(listOf(at(answer, "generatedSamples"))[0], "video")
  const url = addressAt(video, "uri")
  if (url !== null) return { kind: "succeeded", url: withoutKey(url), needsCredential: true, seconds: null }
  if (textAt(video, "encodedVideo") !== null) {
    return { kind: "failed", reason: "the vendor put the video into its reply instead of giving its address" }
  }
  const reasons = listOf(at(answer, "raiMediaFilteredReasons")).filter((reason) => typeof reason === "string")
  const filtered = at(answer, "raiMediaFilteredCount")
  if (reasons.length === 0 && !(typeof filtered === "number" && filtered > 0)) return finished(null, null)
  const why = reasons.length === 0 ? "the vendor gave no reason" : reasons.join("; ")
  return { kind: "failed", reason: reasonText(`refused by the vendor's content filter: ${why}`) }
}

/** A key in an address would be passed on to callers. */
function withoutKey(address: string): string {
  const url = new URL(address)
  if (!url.searchParams.has("key")) return address
  url.searchParams.delete("key")
  return url.href
}

/** Errors may come wrapped in a list; a wrong key is told as if the request were wrong. */
function errorOf(reply: Reply): VendorError | null {
  const error = at(Array.isArray(reply.json) ? reply.json[0] : reply.json, "error")
  const word = textAt(error, "status")
  if (word === null) return null
  const wrongKey = listOf(at(error, "details")).some((detail) => textAt(detail, "reason") === "API_KEY_INVALID")
  const code = at(error, "code")
  const status = typeof code === "number" && code >= 400 && code < 600 ? code : undefined
  return {
    status: wrongKey ? 401 : (status ?? (isOk(reply) ? 400 : undefined)),
    message: reasonText(`${errorText(error) ?? "the vendor gave no reason"} (${word})`),
  }
}
