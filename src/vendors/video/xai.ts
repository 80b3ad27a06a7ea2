import type { JsonObject, JsonValue } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import type { VideoAsk, VideoProgress, VideoVendor } from "../../core/video-vendor.ts"
import { addressAt, at, errorText, isOk, refText, textAt, unreadable } from "../reply.ts"
import { type FrameRule, fitFrame, imageText, passedOn } from "./asking.ts"
import { anyDuration, type DurationRule, fitDuration, secondsFrom } from "./duration-rule.ts"
import { noVerdict, secondsAt, wordOf } from "./reading.ts"
import { notAccepted, type VendorError } from "./refusal.ts"

interface ModelRow {
  readonly models: RegExp
  readonly durations: DurationRule
  readonly tiers: FrameRule["tiers"]
}

const ratios = ["16:9", "9:16", "1:1", "4:3", "3:4", "3:2", "2:3"]
const small = { "480p": 480, "720p": 720 } as const
const all = { ...small, "1080p": 1080 } as const

// The first row that fits a model's name counts.
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { models: /^grok-imagine-video$/, durations: secondsFrom(1, 15, 8), tiers: small },
  { models: /^grok-imagine-video-1\.5/, durations: secondsFrom(1, 15, 8), tiers: all },
  { models: /^/, durations: { ...anyDuration, usual: 8 }, tiers: all },
]

const words: ReadonlyMap<string, "running" | "done" | "failed" | "expired"> = new Map([
  ["pending", "running"],
  ["done", "done"],
  ["failed", "failed"],
  ["expired", "expired"],
])

/** `output` holds an address that the video would be uploaded to, past the gateway. */
const held = ["output"]

/** xAI's Grok Imagine. */
export const xai: VideoVendor = {
  vendor: "xai",
  hosts: [],
  images: { byUrl: true, byData: true },

  submit(ask, { baseUrl, upstreamModel }) {
    const row = models.find((candidate) => candidate.models.test(upstreamModel))!
    const duration = fitDuration(ask.duration, row.durations)
    return {
      seconds: duration,
      call: {
        method: "POST",
        url: `${baseUrl}/videos/generations`,
        body: {
          ...passedOn(ask.extra, held),
          model: upstreamModel,
          prompt: ask.prompt,
          duration,
          ...sizeOf(ask.size, row.tiers),
          ...(ask.image === null ? {} : { image: { url: imageText(ask.image) } }),
        },
      },
    }
  },

  readSubmit(reply) {
    const id = textAt(reply.json, "request_id")
    if (isOk(reply) && id !== null) return { kind: "accepted", ref: { id }, vendorId: id }
    return notAccepted(reply, errorOf(reply))
  },

  poll(ref, { baseUrl }) {
    return { method: "GET", url: `${baseUrl}/videos/${encodeURIComponent(refText(ref, "id"))}` }
  },

  readPoll(reply) {
    if (!isOk(reply)) return noVerdict(reply)
    const word = wordOf(at(reply.json, "status"))
    // Older replies have the video and no word for it; a job that is not done may be answered by the status 202 alone.
    if (word === null && addressAt(reply.json, "video", "url") !== null) return done(reply.json)
    if (word === null) return reply.status === 202 ? { kind: "running" } : unreadable(reply)
    switch (words.get(word)) {
      case "running":
        return { kind: "running" }
      case "done":
        return done(reply.json)
      case "failed":
        return { kind: "failed", reason: errorText(reply.json) ?? "the vendor gave no reason" }
      case "expired":
        return { kind: "failed", reason: "the job expired at the vendor" }
      default:
        return { kind: "running", oddWord: word }
    }
  },
}

function sizeOf(size: VideoAsk["size"], tiers: FrameRule["tiers"]): JsonObject {
  if (size === null) return {}
  const { ratio, tier } = fitFrame(size, { ratios, tiers })
  return { aspect_ratio: ratio, resolution: tier }
}

/** A video that did not pass moderation is called done as well: without its address, or marked. */
function done(json: JsonValue): VideoProgress {
  const url = addressAt(json, "video", "url")
  if (url === null || at(json, "video", "respect_moderation") === false) {
    return { kind: "failed", reason: "the video was refused by the vendor's moderation" }
  }
  return { kind: "succeeded", url, seconds: secondsAt(json, "video", "duration") }
}

/** `{ error: { message } }`, `{ code, error }` or `{ error }`. */
function errorOf({ status, json }: Reply): VendorError | null {
  const message = at(json, "error") === undefined ? null : errorText(json)
  if (message === null) return null
  // A wrong key is answered as if the request were wrong, with a part of the key in the text.
  const wrongKey = status === 400 && /\bapi key\b/i.test(message)
  return wrongKey ? { status: 401, message: "the vendor does not accept the upstream's credential" } : { message }
}
