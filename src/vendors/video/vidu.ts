import type { JsonObject, JsonValue } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import type { VideoAsk, VideoProgress, VideoVendor } from "../../core/video-vendor.ts"
import { addressAt, at, isOk, listOf, reasonText, refText, textAt } from "../reply.ts"
import { type FrameRule, fitFrame, imageText, passedOn } from "./asking.ts"
import { anyDuration, type DurationRule, fitDuration, seconds, secondsFrom } from "./duration-rule.ts"
import { finished, noVerdict, secondsAt, wordOf } from "./reading.ts"
import { notAccepted, type VendorError } from "./refusal.ts"

interface ModelRow {
  readonly models: RegExp
  readonly durations: DurationRule
  readonly tiers: FrameRule["tiers"]
}

const ratios = ["16:9", "9:16", "1:1", "4:3", "3:4"]
const large = { "1080p": 1080 } as const
const all = { "540p": 540, "720p": 720, ...large } as const

// The first row that fits a model's name counts.
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { models: /^viduq3/, durations: secondsFrom(1, 16, 5), tiers: all },
  { models: /^viduq2/, durations: secondsFrom(1, 10, 5), tiers: all },
  { models: /^viduq1/, durations: seconds([5], 5), tiers: large },
  { models: /^/, durations: anyDuration, tiers: all },
]

const words: ReadonlyMap<string, "queued" | "running" | "succeeded" | "failed"> = new Map([
  ["created", "queued"],
  ["queueing", "queued"],
  ["processing", "running"],
  ["success", "succeeded"],
  ["failed", "failed"],
])

/** It sends results past the gateway. */
const held = ["callback_url"]

/** Shengshu's Vidu. The length of a video is in another list than its address, so it takes a call more. */
export const vidu: VideoVendor = {
  vendor: "vidu",
  hosts: [],
  images: { byUrl: true, byData: true },

  submit(ask, { baseUrl, upstreamModel, jobId }) {
    const row = models.find((candidate) => candidate.models.test(upstreamModel))!
    const duration = fitDuration(ask.duration, row.durations)
    return {
      seconds: duration,
      call: {
        method: "POST",
        url: `${baseUrl}/ent/v2/${ask.image === null ? "text2video" : "img2video"}`,
        body: {
          ...passedOn(ask.extra, held),
          model: upstreamModel,
          prompt: ask.prompt,
          duration,
          ...sizeOf(ask, row.tiers),
          ...(ask.image === null ? {} : { images: [imageText(ask.image)] }),
          // Comes back in every reply, for people who compare the two sides.
          payload: jobId,
        },
      },
    }
  },

  readSubmit(reply) {
    const task = idAt(reply.json, "task_id")
    if (isOk(reply) && task !== null) return { kind: "accepted", ref: { task }, vendorId: task }
    return notAccepted(reply, errorOf(reply))
  },

  poll(ref, { baseUrl }) {
    const task = encodeURIComponent(refText(ref, "task"))
    const path = textAt(ref, "url") === null ? `tasks/${task}/creations` : `tasks?task_ids=${task}`
    return { method: "GET", url: `${baseUrl}/ent/v2/${path}` }
  },

  readPoll(reply, ref) {
    const url = addressAt(ref, "url")
    // The job is done already; a list that does not tell its length is no reason to keep the video back.
    if (url !== null) return finished(url, isOk(reply) ? lengthIn(reply.json, ref) : null)
    const word = wordOf(at(reply.json, "state"))
    if (!isOk(reply) || word === null) return noVerdict(reply)
    switch (words.get(word)) {
      case "queued":
        return { kind: "queued" }
      case "running":
        return { kind: "running" }
      case "succeeded":
        return readCreation(reply.json, ref)
      case "failed":
        return { kind: "failed", reason: failure(reply.json) }
      default:
        return { kind: "running", oddWord: word }
    }
  },
}

/** A picture decides on the ratio, and the path for pictures takes none: only the resolution of a size can be said there. */
function sizeOf({ size, image }: VideoAsk, tiers: FrameRule["tiers"]): JsonObject {
  if (size === null) return {}
  const { ratio, tier } = fitFrame(size, image === null ? { ratios, tiers } : { tiers })
  return { resolution: tier, ...(ratio === null ? {} : { aspect_ratio: ratio }) }
}

function readCreation(json: JsonValue, ref: JsonValue): VideoProgress {
  const creation = listOf(at(json, "creations"))[0]
  const [url, task] = [addressAt(creation, "url"), textAt(ref, "task")]
  if (url === null || task === null) return finished(url, null)
  return { kind: "continue", ref: { task, url, creation: idAt(creation, "id") } }
}

/** The length of the very video: the list may hold other tasks, and what was asked for is not what was made. */
function lengthIn(json: JsonValue, ref: JsonValue): number | null {
  const task = listOf(at(json, "tasks")).find((entry) => idAt(entry, "id") === textAt(ref, "task"))
  const creation = listOf(at(task, "creations")).find((entry) => idAt(entry, "id") === textAt(ref, "creation"))
  return secondsAt(creation, "video", "duration")
}

function failure(json: JsonValue): string {
  const code = textAt(json, "err_code")
  if (code === null) return "the vendor gave no reason"
  return reasonText(
    /policy|audit/i.test(code) ? `refused by the vendor's moderation (${code})` : `the job failed (${code})`,
  )
}

/** `{ code, reason, message }`: the reason is a word to go by, the code an HTTP status, which may come in a 200. */
function errorOf(reply: Reply): VendorError | null {
  const [code, reason, text] = [at(reply.json, "code"), textAt(reply.json, "reason"), textAt(reply.json, "message")]
  if (code === undefined || (reason === null && text === null)) return null
  const message = reasonText(text === null || reason === null ? (text ?? reason!) : `${text} (${reason})`)
  if (reason === "CreditInsufficient") return { status: 402, message }
  const inside = isOk(reply) && typeof code === "number" && code >= 400 && code < 600
  return inside ? { status: code, message } : { message }
}

function idAt(json: JsonValue | undefined, name: string): string | null {
  const id = at(json, name)
  return typeof id === "number" && Number.isSafeInteger(id) ? String(id) : textAt(json, name)
}
