import type { JsonValue } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import type { VideoProgress, VideoVendor } from "../../core/video-vendor.ts"
import { addressAt, at, errorText, isOk, refText, textAt, unreadable } from "../reply.ts"
import { anySize } from "../size-rule.ts"
import { imageText, passedOn } from "./asking.ts"
import { type DurationRule, fitDuration, seconds, secondsFrom } from "./duration-rule.ts"
import { noVerdict, secondsAt, wordOf } from "./reading.ts"
import { notAccepted, type VendorError } from "./refusal.ts"
import { type SizeFields, sizeFields } from "./size-fields.ts"

interface ModelRow {
  readonly models: RegExp
  readonly durations: DurationRule
  readonly sizes: SizeFields
}

const soraSizes = ["720x1280", "1280x720"] as const

/** The protocol's own models; of those that other servers run by it, the server is the judge. The first row that fits counts. */
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { models: /^sora-2-pro/, durations: seconds([4, 8, 12], 4), sizes: { kind: "list", sizes: [...soraSizes, "1024x1792", "1792x1024"] } },
  { models: /^sora-2/, durations: seconds([4, 8, 12], 4), sizes: { kind: "list", sizes: soraSizes } },
  { models: /^/, durations: secondsFrom(1, 60, 4), sizes: anySize },
]

/** The last three words are no part of the protocol, but servers that follow it say them. */
const statuses: ReadonlyMap<string, "queued" | "running" | "completed" | "failed"> = new Map([
  ["queued", "queued"],
  ["in_progress", "running"],
  ["completed", "completed"],
  ["failed", "failed"],
  ["submitted", "queued"],
  ["processing", "running"],
  ["unknown", "running"],
])

/** Kept from callers: they send results elsewhere. */
const never = ["callback_url", "webhook", "webhook_url"]

/** The OpenAI videos protocol, as other servers than OpenAI's speak it. */
export const openaiVideos: VideoVendor = {
  vendor: "openai-compatible",
  hosts: [],
  images: { byUrl: true, byData: true },

  submit(ask, { baseUrl, upstreamModel }) {
    const row = models.find((candidate) => candidate.models.test(upstreamModel))!
    const duration = fitDuration(ask.duration, row.durations)
    return {
      seconds: duration,
      call: {
        method: "POST",
        url: `${baseUrl}/videos`,
        body: {
          ...passedOn(ask.extra, never),
          model: upstreamModel,
          prompt: ask.prompt,
          seconds: String(duration),
          ...sizeFields(ask.size, row.sizes),
          ...(ask.image === null ? {} : { input_reference: { image_url: imageText(ask.image) } }),
        },
      },
    }
  },

  readSubmit(reply) {
    const id = idOf(reply.json)
    if (isOk(reply) && id !== null) return { kind: "accepted", ref: { id }, vendorId: id }
    return notAccepted(reply, errorOf(reply))
  },

  poll(ref, { baseUrl }) {
    return { method: "GET", url: jobUrl(ref, baseUrl) }
  },

  readPoll(reply, ref, { baseUrl }) {
    if (!isOk(reply)) return noVerdict(reply)
    const word = wordOf(at(reply.json, "status"))
    // Others speak of a status too; a job has an id besides, and one that is completed may have nothing else to tell it by.
    if (word === null || idOf(reply.json) === null) return unreadable(reply)
    switch (statuses.get(word)) {
      case "queued":
        return { kind: "queued" }
      case "running":
        return { kind: "running" }
      case "completed":
        return resultOf(reply.json, ref, baseUrl)
      case "failed":
        return { kind: "failed", reason: errorText(reply.json) ?? "the vendor gave no reason" }
      default:
        return { kind: "running", oddWord: word }
    }
  },
}

function idOf(json: JsonValue): string | null {
  return textAt(json, "id") ?? textAt(json, "task_id")
}

function jobUrl(ref: JsonValue, baseUrl: string): string {
  return `${baseUrl}/videos/${encodeURIComponent(refText(ref, "id"))}`
}

/** The protocol has a path for the video, which takes the credential; some servers name an address of their own besides. */
function resultOf(json: JsonValue, ref: JsonValue, baseUrl: string): VideoProgress {
  const named = addressAt(json, "url") ?? addressAt(json, "metadata", "url")
  const seconds = secondsAt(json, "seconds")
  if (named !== null && new URL(named).origin !== new URL(baseUrl).origin)
    return { kind: "succeeded", url: named, seconds }
  return { kind: "succeeded", url: named ?? `${jobUrl(ref, baseUrl)}/content`, needsCredential: true, seconds }
}

/** Such servers often stand before others: their 502 may be about a job that one of those has. */
function errorOf(reply: Reply): VendorError | null {
  const message = errorText({ error: at(reply.json, "error") })
  return message === null || reply.status === 502 ? null : { message, status: isOk(reply) ? 502 : undefined }
}
