import type { JsonObject, JsonValue } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import type { VideoAsk, VideoVendor } from "../../core/video-vendor.ts"
import { addressAt, at, errorText, isOk, listOf, reasonText, refText, textAt } from "../reply.ts"
import { anySize, fitSize, type Size, type SizeRule } from "../size-rule.ts"
import { type FrameRule, fitFrame, imageText, needsImage, passedOn } from "./asking.ts"
import { anyDuration, type DurationRule, fitDuration, seconds, secondsFrom } from "./duration-rule.ts"
import { finished, noVerdict, wordOf } from "./reading.ts"
import { notAccepted, type VendorError } from "./refusal.ts"

/** How a model is told of a size, and the ratio it is told where it wants one and the caller named none. */
type SizeManner =
  /** `ratio`, which is the size itself with a colon. */
  | { readonly kind: "pixels"; readonly rule: SizeRule; readonly usual?: string }
  /** `resolution`, with a true `ratio` where the model takes one. */
  | { readonly kind: "frame"; readonly rule: FrameRule; readonly usual?: string }
  /** `ratio` as well, which then names a resolution: the picture decides on the shape. */
  | { readonly kind: "auto"; readonly rule: FrameRule; readonly usual?: string }

interface ModelRow {
  readonly models: RegExp
  /** Null for models that only go on from a picture. */
  readonly fromText: SizeManner | null
  readonly fromImage: SizeManner
  readonly durations: DurationRule
}

const any: SizeManner = { kind: "pixels", rule: anySize }

function pixels(line: string, usual?: string): SizeManner {
  return { kind: "pixels", rule: { kind: "list", sizes: line.split(" ") }, ...(usual === undefined ? {} : { usual }) }
}

const gen4 = "1280x720 720x1280"
const gen4FromImage = pixels(`${gen4} 1104x832 960x960 832x1104 1584x672`, "1280:720")
const veo = pixels("1280x720 720x1280 1080x1920 1920x1080", "1280:720")
const at720 = "1470x630 1280x720 1112x834 960x960 834x1112 720x1280"
const at1080 = "2206x946 1920x1080 1664x1248 1440x1440 1248x1664 1080x1920"
const at4k = "3840x1646 3840x2160 3840x2880 3840x3840 2880x3840 2160x3840"
const seedance2Small = pixels(`992x432 864x496 752x560 640x640 560x752 496x864 ${at720}`)
const seedance2 = pixels(`992x432 864x496 752x560 640x640 560x752 496x864 ${at720} ${at1080} ${at4k}`)
const seedance25 = pixels(`992x432 854x480 752x560 640x640 560x752 480x854 ${at720} ${at1080}`)
const happyhorse = pixels(
  "1280x720 720x1280 960x960 1108x832 832x1108 1920x1080 1080x1920 1440x1440 1662x1248 1248x1662",
)
const upTo1080 = { "480p": 480, "720p": 720, "1080p": 1080 } as const
const hailuoTiers = { "768p": 768, "2k": 1440 } as const
const hailuoRatios = ["16:9", "9:16", "1:1", "4:3", "3:4", "21:9"]
const grokRatios = ["16:9", "9:16", "1:1", "4:3", "3:4", "3:2", "2:3"]

// The first row that fits a model's name counts; where a list or a length is not known for certain, Runway is the judge.
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { models: /^gen4\.5$/, fromText: pixels(gen4, "1280:720"), fromImage: gen4FromImage, durations: secondsFrom(2, 10, 5) },
  { models: /^gen4_turbo$/, fromText: null, fromImage: gen4FromImage, durations: secondsFrom(2, 10, 5) },
  { models: /^veo3\.1(_fast)?$/, fromText: veo, fromImage: veo, durations: seconds([4, 6, 8], 8) },
  { models: /^seedance2$/, fromText: seedance2, fromImage: seedance2, durations: anyDuration },
  { models: /^seedance2_(fast|mini)$/, fromText: seedance2Small, fromImage: seedance2Small, durations: anyDuration },
  { models: /^seedance2_5$/, fromText: seedance25, fromImage: seedance25, durations: anyDuration },
  { models: /^hailuo3$/, fromText: { kind: "frame", rule: { ratios: hailuoRatios, tiers: hailuoTiers }, usual: "16:9" },
    fromImage: { kind: "frame", rule: { tiers: hailuoTiers } }, durations: anyDuration },
  { models: /^happyhorse_1_0$/, fromText: happyhorse,
    fromImage: { kind: "frame", rule: { tiers: { "720p": 720, "1080p": 1080 } } }, durations: anyDuration },
  { models: /^wan3/, fromText: any, fromImage: { kind: "auto", rule: { tiers: upTo1080 } }, durations: anyDuration },
  { models: /^grok_imagine_1_5$/, fromText: { kind: "frame", rule: { ratios: grokRatios, tiers: upTo1080 } },
    fromImage: { kind: "frame", rule: { tiers: upTo1080 } }, durations: anyDuration },
  { models: /^/, fromText: any, fromImage: any, durations: anyDuration },
]

const words: ReadonlyMap<string, "queued" | "running" | "succeeded" | "failed" | "cancelled"> = new Map([
  ["pending", "queued"],
  ["throttled", "queued"], // Accepted; it waits for the account's other jobs.
  ["running", "running"],
  ["succeeded", "succeeded"],
  ["failed", "failed"],
  ["cancelled", "cancelled"],
])

/** Other formats than MP4 cost more by the second, and nobody could measure them. */
const held = ["outputFormat", "proresProfile"]

/** Runway, with the models of others that it offers. The version that the header names is the preset's. */
export const runway: VideoVendor = {
  vendor: "runway",
  leastPollMs: 5000,
  hosts: [],
  images: { byUrl: true, byData: true },

  submit(ask, { baseUrl, upstreamModel }) {
    const row = models.find((candidate) => candidate.models.test(upstreamModel))!
    if (row.fromText === null) needsImage(ask.image)
    const manner = ask.image === null ? row.fromText! : row.fromImage
    const duration = fitDuration(ask.duration, row.durations)
    return {
      seconds: duration,
      call: {
        method: "POST",
        url: `${baseUrl}/v1/${ask.image === null ? "text_to_video" : "image_to_video"}`,
        body: {
          ...(manner.usual === undefined ? {} : { ratio: manner.usual }),
          ...passedOn(ask.extra, held),
          model: upstreamModel,
          promptText: ask.prompt,
          duration,
          ...sizeOf(ask.size, manner),
          ...pictureOf(ask),
        },
      },
    }
  },

  readSubmit(reply) {
    const id = textAt(reply.json, "id")
    if (isOk(reply) && id !== null) return { kind: "accepted", ref: { id }, vendorId: id }
    return notAccepted(reply, errorOf(reply))
  },

  poll(ref, { baseUrl }) {
    return { method: "GET", url: taskUrl(baseUrl, ref) }
  },

  readPoll(reply) {
    const word = wordOf(at(reply.json, "status"))
    if (!isOk(reply) || word === null) return noVerdict(reply)
    switch (words.get(word)) {
      case "queued":
        return { kind: "queued" }
      case "running":
        return { kind: "running" }
      case "succeeded":
        return finished(addressAt({ url: listOf(at(reply.json, "output"))[0] }, "url"), null)
      case "failed":
        return { kind: "failed", reason: failure(reply) }
      case "cancelled":
        return { kind: "failed", reason: "the job was cancelled at the vendor" }
      default:
        return { kind: "running", oddWord: word }
    }
  },

  cancel(ref, { baseUrl }) {
    return { method: "DELETE", url: taskUrl(baseUrl, ref) }
  },
}

function taskUrl(baseUrl: string, ref: JsonValue): string {
  return `${baseUrl}/v1/tasks/${encodeURIComponent(refText(ref, "id"))}`
}

/** Some models take a picture without a position for a mere example of what to show. */
function pictureOf({ image }: VideoAsk): JsonObject {
  return image === null ? {} : { promptImage: [{ uri: imageText(image), position: "first" }] }
}

function sizeOf(size: Size | null, manner: SizeManner): JsonObject {
  if (size === null) return {}
  if (manner.kind === "pixels") {
    fitSize(size, manner.rule)
    return { ratio: `${size.width}:${size.height}` }
  }
  const { ratio, tier } = fitFrame(size, manner.rule)
  if (manner.kind === "auto") return { ratio: `auto_${tier}` }
  return { ...(ratio === null ? {} : { ratio }), resolution: tier }
}

function failure({ json }: Reply): string {
  const code = textAt(json, "failureCode")
  const text = textAt(json, "failure") ?? "the job failed"
  const moderated = code?.startsWith("SAFETY.") ?? false
  return reasonText(
    `${moderated ? "refused by the vendor's moderation: " : ""}${text}${code === null ? "" : ` (${code})`}`,
  )
}

/** `{ error }` in words, for some with a list of what is wrong where. */
function errorOf({ json }: Reply): VendorError | null {
  const error = errorText(at(json, "error") === undefined ? null : json)
  if (error === null) return null
  // An account without credits is answered as if the request were wrong.
  if (/\benough credits\b/i.test(error)) return { status: 402, message: error }
  const issues = listOf(at(json, "issues"))
    .map(issueText)
    .filter((text) => text !== null)
  return { message: reasonText([error, ...issues].join("; ")) }
}

function issueText(issue: JsonValue): string | null {
  const place = listOf(at(issue, "path")).join(".")
  const text = textAt(issue, "message")
  return text === null || place === "" ? text : `${place}: ${text}`
}
