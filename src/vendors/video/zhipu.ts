import type { JsonObject } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import type { VideoContext, VideoImage, VideoVendor } from "../../core/video-vendor.ts"
import { addressAt, at, errorText, isOk, listOf, refText, textAt, unreadable } from "../reply.ts"
import { anySize, ratios } from "../size-rule.ts"
import { imageText, passedOn } from "./asking.ts"
import { anyDuration, type DurationRule, fitDuration, seconds, secondsFrom } from "./duration-rule.ts"
import { finished, noVerdict, wordOf } from "./reading.ts"
import { notAccepted, type VendorError } from "./refusal.ts"
import { type SizeFields, sizeFields } from "./size-fields.ts"

interface ModelRow {
  readonly models: RegExp
  readonly durations: DurationRule
  readonly sizes: SizeFields
}

const cogSizes: SizeFields = {
  kind: "list",
  sizes: ["1280x720", "720x1280", "1024x1024", "1920x1080", "1080x1920", "2048x1080", "3840x2160"],
}

/** Sizes are pixels as they are, but for Vidu's models from text. The first row that fits a model's name counts. */
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { models: /^cogvideox-3/, durations: seconds([5, 10], 5), sizes: cogSizes },
  { models: /^cogvideox/, durations: seconds([5, 10], 5), sizes: anySize },
  { models: /^viduq1-text/, durations: seconds([5], 5), sizes: ratios("16:9 9:16 3:4 4:3 1:1") },
  { models: /^viduq1/, durations: seconds([5], 5), sizes: anySize },
  { models: /^vidu2/, durations: secondsFrom(1, 60, 4), sizes: anySize },
  { models: /^/, durations: anyDuration, sizes: anySize },
]

const statuses: ReadonlyMap<string, "running" | "succeeded" | "failed"> = new Map([
  ["processing", "running"],
  ["success", "succeeded"],
  ["fail", "failed"],
])

/** What an error code amounts to, whatever status it came with: an empty account is told by the one of a crowded one. */
// biome-ignore format: a table
const codes: ReadonlyMap<string, number> = new Map([
  ["1000", 401], ["1001", 401], ["1002", 401], ["1003", 401], ["1004", 401],
  ["1113", 402],
  ["1210", 400], ["1214", 400],
  ["1301", 400],
  ["1302", 429], ["1303", 429], ["1305", 429],
])

/** Zhipu's CogVideoX, and the models of Vidu that it runs; Z.ai by its base URL. */
export const zhipu: VideoVendor = {
  vendor: "zhipu",
  hosts: [],
  images: { byUrl: true, byData: true },

  submit(ask, context) {
    const row = models.find((candidate) => candidate.models.test(context.upstreamModel))!
    const duration = fitDuration(ask.duration, row.durations)
    return {
      seconds: duration,
      call: {
        method: "POST",
        url: `${context.baseUrl}/videos/generations`,
        body: {
          ...passedOn(ask.extra, []),
          model: context.upstreamModel,
          prompt: ask.prompt,
          ...pictureOf(ask.image, context),
          duration,
          ...sizeFields(ask.size, row.sizes),
          request_id: context.jobId,
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
    return { method: "GET", url: `${baseUrl}/async-result/${encodeURIComponent(refText(ref, "id"))}` }
  },

  readPoll(reply) {
    if (!isOk(reply)) return noVerdict(reply)
    const word = wordOf(at(reply.json, "task_status"))
    if (word === null) return unreadable(reply)
    switch (statuses.get(word)) {
      case "running":
        return { kind: "running" }
      case "succeeded":
        return finished(addressAt(listOf(at(reply.json, "video_result"))[0], "url"), null)
      case "failed":
        return { kind: "failed", reason: errorText(reply.json) ?? "the vendor gave no reason" }
      default:
        return { kind: "running", oddWord: word }
    }
  },
}

/** The documentation says base64 and not which: a data URI unless the upstream is set to the bare text. */
function pictureOf(image: VideoImage | null, { settings }: VideoContext): JsonObject {
  if (image === null) return {}
  const bare = settings.bare_base64_images === true && "base64" in image
  return { image_url: bare ? image.base64 : imageText(image) }
}

/** An error may come in a 200, and then without a number that anyone else knows. */
function errorOf(reply: Reply): VendorError | null {
  const error = at(reply.json, "error")
  const message = errorText({ error })
  if (message === null) return null
  const code = at(error, "code")
  const status = typeof code === "string" || typeof code === "number" ? codes.get(String(code)) : undefined
  return { message, status: status ?? (isOk(reply) ? 502 : undefined) }
}
