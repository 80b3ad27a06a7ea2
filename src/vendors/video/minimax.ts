import type { JsonObject, JsonValue } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import type { VideoAsk, VideoProgress, VideoVendor } from "../../core/video-vendor.ts"
import { addressAt, at, errorText, isOk, reasonText, refText, textAt } from "../reply.ts"
import { type FrameRule, fitFrame, imageText, needsImage, passedOn } from "./asking.ts"
import { anyDuration, type DurationRule, fitDuration, seconds, secondsFrom } from "./duration-rule.ts"
import { finished, noVerdict, secondsAt, wordOf } from "./reading.ts"
import { notAccepted, type VendorError } from "./refusal.ts"

interface ModelRow {
  readonly models: RegExp
  /** The newer protocol, in which the prompt and the picture are items of one list. */
  readonly itemized?: true
  readonly onlyFromImage?: true
  readonly durations: DurationRule
  /** Where 1080P is not made at every length. */
  readonly at1080?: DurationRule
  readonly fromText: FrameRule
  /** A picture decides on the shape. */
  readonly fromImage: FrameRule
}

/** Without a picture the older models make landscape videos only, and have no parameter for another shape. */
const landscape = ["16:9"]
const usual = { "768P": 768, "1080P": 1080 } as const
const small = { "720P": 720 } as const
const all = { "512P": 512, "720P": 720, "768P": 768, "1080P": 1080 } as const
const large = { "768P": 768, "2K": 1440 } as const
const ratios = ["16:9", "9:16", "1:1", "4:3", "3:4", "21:9"]

const hailuo = {
  durations: seconds([6, 10], 6),
  at1080: seconds([6], 6),
  fromText: { ratios: landscape, tiers: usual },
  fromImage: { tiers: usual },
} as const
const first = {
  durations: seconds([6], 6),
  fromText: { ratios: landscape, tiers: small },
  fromImage: { tiers: small },
} as const
const itemized = { itemized: true, fromText: { ratios, tiers: large }, fromImage: { tiers: large } } as const

// The first row that fits a model's name counts.
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { models: /^MiniMax-H3$/, ...itemized, durations: secondsFrom(5, 15, 5) },
  { models: /^MiniMax-H\d/, ...itemized, durations: anyDuration },
  { models: /^MiniMax-Hailuo-2\.3-Fast/, ...hailuo, onlyFromImage: true },
  { models: /^MiniMax-Hailuo-2\.3/, ...hailuo },
  { models: /^MiniMax-Hailuo-02/, ...hailuo, fromImage: { tiers: { "512P": 512, ...usual } } },
  { models: /^I2V-01/, ...first, onlyFromImage: true },
  { models: /^[TS]2V-01/, ...first },
  { models: /^/, durations: { ...anyDuration, usual: 6 }, fromText: { ratios: landscape, tiers: all }, fromImage: { tiers: all } },
]

/** The words of both protocols: they do not contradict each other. */
const words: ReadonlyMap<string, "queued" | "running" | "succeeded" | "failed"> = new Map([
  ["preparing", "queued"],
  ["queueing", "queued"],
  ["processing", "running"],
  ["success", "succeeded"],
  ["fail", "failed"],
  ["queued", "queued"],
  ["running", "running"],
  ["succeeded", "succeeded"],
  ["failed", "failed"],
  ["cancelled", "failed"],
  ["expired", "failed"],
])

/** What a code amounts to that comes in a 200; the others are trouble of the vendor's. */
// biome-ignore format: a table
const codes: ReadonlyMap<number, number> = new Map([
  [1001, 504], [1002, 429], [1004, 401], [1008, 402], [1026, 400], [1027, 400], [1039, 429], [1042, 400], [2013, 400], [2049, 401],
])

const moderation: ReadonlySet<number> = new Set([1026, 1027])

/** It sends results past the gateway. */
const held = ["callback_url"]

/** MiniMax's Hailuo. Keys belong to one of its two hosts, so no other is ever called. */
export const minimax: VideoVendor = {
  vendor: "minimax",
  hosts: [],
  images: { byUrl: true, byData: true },

  submit(ask, { baseUrl, upstreamModel }) {
    const row = rowOf(upstreamModel)
    if (row.onlyFromImage) needsImage(ask.image)
    const frame = ask.size === null ? null : fitFrame(ask.size, ask.image === null ? row.fromText : row.fromImage)
    const rule = frame?.tier === "1080P" ? (row.at1080 ?? row.durations) : row.durations
    const duration = fitDuration(ask.duration, rule)
    const resolution = frame === null ? {} : { resolution: frame.tier }
    const own = { model: upstreamModel, duration, ...resolution }
    return {
      seconds: duration,
      call: {
        method: "POST",
        url: `${baseUrl}/${versionOf(row)}/video_generation`,
        body: row.itemized ? { ...itemsBody(ask, frame?.ratio ?? null), ...own } : { ...plainBody(ask), ...own },
      },
    }
  },

  readSubmit(reply, { upstreamModel }) {
    const task = idAt(reply, "task_id")
    const error = errorOf(reply)
    if (isOk(reply) && error === null && task !== null) {
      return { kind: "accepted", ref: { task, version: versionOf(rowOf(upstreamModel)) }, vendorId: task }
    }
    return notAccepted(reply, error)
  },

  poll(ref, { baseUrl }) {
    const file = textAt(ref, "file")
    if (file !== null) return { method: "GET", url: `${baseUrl}/v1/files/retrieve?file_id=${encodeURIComponent(file)}` }
    const [version, task] = [refText(ref, "version"), encodeURIComponent(refText(ref, "task"))]
    const query = version === "v2" ? `/${task}` : `?task_id=${task}`
    return { method: "GET", url: `${baseUrl}/${version}/query/video_generation${query}` }
  },

  readPoll(reply, ref) {
    if (textAt(ref, "file") !== null) return readFile(reply)
    const task = textAt(ref, "version") === "v2" ? at(reply.json, "task") : reply.json
    const word = wordOf(at(task, "status"))
    if (!isOk(reply) || word === null) return noVerdict(reply)
    switch (words.get(word)) {
      case "queued":
        return { kind: "queued" }
      case "running":
        return { kind: "running" }
      case "succeeded":
        return readResult(reply, ref)
      case "failed":
        return { kind: "failed", reason: errorOf(reply)?.message ?? errorText(task) ?? `the job ended as "${word}"` }
      default:
        return { kind: "running", oddWord: word }
    }
  },
}

function rowOf(model: string): ModelRow {
  return models.find((candidate) => candidate.models.test(model))!
}

function versionOf(row: ModelRow): "v1" | "v2" {
  return row.itemized ? "v2" : "v1"
}

function plainBody({ prompt, image, extra }: VideoAsk): JsonObject {
  return {
    ...passedOn(extra, held),
    prompt,
    ...(image === null ? {} : { first_frame_image: imageText(image) }),
  }
}

/** A resolution is wanted, and without a picture a ratio: the vendor's usual ones where the caller names none. */
function itemsBody({ prompt, image, extra }: VideoAsk, ratio: string | null): JsonObject {
  const picture =
    image === null ? [] : [{ type: "image_url", image_url: { url: imageText(image) }, role: "first_frame" }]
  return {
    resolution: "2K",
    ...(image === null ? { ratio: "16:9" } : {}),
    ...passedOn(extra, held),
    content: [{ type: "text", text: prompt }, ...picture],
    ...(ratio === null ? {} : { ratio }),
  }
}

/** The older protocol keeps the video as a file, whose address takes a call of its own; the newer one has it at hand. */
function readResult(reply: Reply, ref: JsonValue): VideoProgress {
  const task = at(reply.json, "task")
  if (textAt(ref, "version") === "v2") {
    const length = secondsAt(task, "usage", "output_seconds") ?? secondsAt(task, "duration")
    return finished(addressAt(task, "content", "url"), length)
  }
  const file = idAt(reply, "file_id")
  return file === null
    ? finished(null, null)
    : { kind: "continue", ref: { task: textAt(ref, "task"), version: "v1", file } }
}

function readFile(reply: Reply): VideoProgress {
  const url = addressAt(reply.json, "file", "download_url") ?? addressAt(reply.json, "file", "backup_download_url")
  return isOk(reply) && url !== null ? finished(url, null) : noVerdict(reply)
}

/** Ids are text in some replies and numbers in others, of which the largest only survive in the reply's text. */
function idAt(reply: Reply, name: string): string | null {
  const id = at(reply.json, name)
  if (typeof id !== "number") return textAt(reply.json, name)
  if (!Number.isInteger(id) || id <= 0) return null
  if (Number.isSafeInteger(id)) return String(id)
  return new RegExp(`"${name}"\\s*:\\s*(\\d+)`).exec(reply.text)?.[1] ?? null
}

/** `base_resp` in a 200, or the newer protocol's `error`. */
function errorOf(reply: Reply): VendorError | null {
  const { json } = reply
  const code = numberAt(json, "base_resp", "status_code")
  if (code !== null && code !== 0) {
    const message = `${textAt(json, "base_resp", "status_msg") ?? "the vendor gave no reason"} (code ${code})`
    const text = moderation.has(code) ? `refused by the vendor's moderation: ${message}` : message
    return { status: codes.get(code) ?? (isOk(reply) ? 502 : undefined), message: reasonText(text) }
  }
  const message = at(json, "error") === undefined ? null : errorText(json)
  if (message === null) return null
  const status = numberAt(json, "error", "http_code") ?? 0
  return { status: status >= 400 && status < 600 ? status : undefined, message }
}

function numberAt(json: JsonValue | undefined, ...path: readonly string[]): number | null {
  const found = at(json, ...path)
  const number = typeof found === "string" && /^\d+$/.test(found) ? Number(found) : found
  return typeof number === "number" ? number : null
}
