import type { JsonObject } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import type { VideoAsk, VideoContext, VideoVendor } from "../../core/video-vendor.ts"
import { addressAt, at, isOk, listOf, reasonText, refText, textAt, unreadable } from "../reply.ts"
import { type FrameRule, fitFrame, passedOn } from "./asking.ts"
import { anyDuration, type DurationRule, fitDuration, seconds, secondsFrom } from "./duration-rule.ts"
import { finished, noVerdict, secondsAt, wordOf } from "./reading.ts"
import { notAccepted, type VendorError } from "./refusal.ts"

interface ModelRow {
  readonly models: RegExp
  readonly durations: DurationRule
  /** The vendor calls a resolution a mode. */
  readonly modes: FrameRule["tiers"]
}

const ratios = ["16:9", "9:16", "1:1"]
const upToPro = { std: 720, pro: 1080 }
const upTo4k = { ...upToPro, "4k": 2160 }

// The first row that fits a model's name counts.
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { models: /^kling-v3(-|$)/, durations: secondsFrom(3, 15, 5), modes: upTo4k },
  { models: /^kling-v[12](-|$)/, durations: seconds([5, 10], 5), modes: upToPro },
  { models: /^/, durations: anyDuration, modes: upTo4k },
]

const words: ReadonlyMap<string, "queued" | "running" | "succeeded" | "failed"> = new Map([
  ["submitted", "queued"],
  ["processing", "running"],
  ["succeed", "succeeded"],
  ["failed", "failed"],
])

/** What an error code amounts to. An empty account is told by the HTTP status of a crowded one, hence the codes go first. */
// biome-ignore format: a table
const codes: ReadonlyMap<number, number> = new Map([
  [1000, 401], [1001, 401], [1002, 401], [1003, 401], [1004, 401],
  [1100, 402], [1101, 402], [1102, 402],
  [1103, 403],
  [1200, 400], [1201, 400], [1202, 404], [1203, 404],
  [1300, 400], [1301, 400],
  [1302, 429], [1303, 429],
  [1304, 403], // An address that is not on the account's list: waiting does not help.
  [5000, 500], [5001, 503], [5002, 504],
])

const noSuchJob = 1203

/** It sends results past the gateway. */
const held = ["callback_url"]

/** Kuaishou's Kling, the protocol of its versioned paths. Jobs from text and jobs from a picture live at different paths. */
export const kling: VideoVendor = {
  vendor: "kling",
  hosts: [],
  images: { byUrl: true, byData: true },

  submit(ask, context) {
    const row = models.find((candidate) => candidate.models.test(context.upstreamModel))!
    const duration = fitDuration(ask.duration, row.durations)
    return {
      seconds: duration,
      call: {
        method: "POST",
        url: `${context.baseUrl}/v1/videos/${ask.image === null ? "text2video" : "image2video"}`,
        body: {
          ...passedOn(ask.extra, held),
          model_name: context.upstreamModel,
          prompt: ask.prompt,
          ...pictureOf(ask),
          duration: String(duration),
          ...sizeOf(ask, row),
          external_task_id: context.jobId,
        },
      },
    }
  },

  readSubmit(reply, context) {
    const task = taskOf(reply)
    if (task !== null) return { kind: "accepted", ref: refOf(task, context), vendorId: task }
    return notAccepted(reply, errorOf(reply))
  },

  poll(ref, { baseUrl }) {
    return { method: "GET", url: taskUrl(baseUrl, refText(ref, "path"), refText(ref, "task")) }
  },

  readPoll(reply) {
    const data = at(reply.json, "data")
    const word = wordOf(at(data, "task_status"))
    const video = listOf(at(data, "task_result", "videos"))[0]
    if (!isOk(reply) || errorOf(reply) !== null || word === null) {
      return codeOf(reply) === noSuchJob ? { kind: "missing", why: unreadable(reply).why } : noVerdict(reply)
    }
    switch (words.get(word)) {
      case "queued":
        return { kind: "queued" }
      case "running":
        return { kind: "running" }
      case "succeeded":
        return finished(addressAt(video, "url"), secondsAt(video, "duration"))
      case "failed":
        return { kind: "failed", reason: reasonText(textAt(data, "task_status_msg") ?? "the job failed") }
      default:
        return { kind: "running", oddWord: word }
    }
  },

  locate(context) {
    return { method: "GET", url: taskUrl(context.baseUrl, pathOf(context), context.jobId) }
  },

  readLocate(reply, context) {
    const task = taskOf(reply)
    const owner = textAt(reply.json, "data", "task_info", "external_task_id")
    // Another job's id in the reply means that the vendor understood something else than what was asked.
    if (task !== null && (owner === null || owner === context.jobId)) {
      return { kind: "found", ref: refOf(task, context), vendorId: task }
    }
    return codeOf(reply) === noSuchJob ? { kind: "absent" } : unreadable(reply)
  },

  /** An API key goes as it is; an access key with its secret, `AK:SK`, makes a token for half an hour. */
  sign(credential, now) {
    const [access, secret, ...more] = credential.split(":")
    if (!access || !secret || more.length > 0) return credential
    const time = Math.floor(now / 1000)
    const parts = [
      { alg: "HS256", typ: "JWT" },
      { iss: access, exp: time + 1800, nbf: time - 5 },
    ]
    const signed = parts.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".")
    return `${signed}.${new Bun.CryptoHasher("sha256", secret).update(signed).digest("base64url")}`
  },
}

/** Data goes without any prefix. */
function pictureOf({ image }: VideoAsk): JsonObject {
  if (image === null) return {}
  return { image: "url" in image ? image.url : image.base64 }
}

/** A picture decides on the ratio, and the path for pictures takes none: only the resolution of a size can be said there. */
function sizeOf({ size, image }: VideoAsk, row: ModelRow): JsonObject {
  if (size === null) return {}
  const { ratio, tier } = fitFrame(size, image === null ? { ratios, tiers: row.modes } : { tiers: row.modes })
  return { mode: tier, ...(ratio === null ? {} : { aspect_ratio: ratio }) }
}

function pathOf({ withImage = false }: VideoContext): string {
  return withImage ? "image2video" : "text2video"
}

function refOf(task: string, context: VideoContext): JsonObject {
  return { task, path: pathOf(context) }
}

function taskUrl(baseUrl: string, path: string, id: string): string {
  return `${baseUrl}/v1/videos/${path}/${encodeURIComponent(id)}`
}

function taskOf(reply: Reply): string | null {
  return isOk(reply) && errorOf(reply) === null ? textAt(reply.json, "data", "task_id") : null
}

/** Zero is success; null where there is no code at all. */
function codeOf(reply: Reply): number | null {
  const code = at(reply.json, "code")
  const number = typeof code === "string" && /^\d+$/.test(code) ? Number(code) : code
  return typeof number === "number" ? number : null
}

/** An error may come in a 200: its code tells. */
function errorOf(reply: Reply): VendorError | null {
  const code = codeOf(reply)
  if (code === null || code === 0) return null
  const message = textAt(reply.json, "message") ?? "the vendor gave no reason"
  return {
    status: codes.get(code) ?? (isOk(reply) && code < 5000 ? 400 : undefined),
    message: reasonText(`${message} (code ${code})`),
  }
}
