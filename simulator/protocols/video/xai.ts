import { isObject } from "../../../src/core/json.ts"
import type { Behaviour } from "../../behaviour.ts"
import type { VideoJob } from "../../memory.ts"
import { jsonReply, type Reply, wholeReply } from "../../wire/reply.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { resultUrl } from "./cdn.ts"
import { type Body, bearer, bodyOf, isNamed, isNoneOr, isPictureUrl, isText, isWhole } from "./fields.ts"
import {
  findVideo,
  isOver,
  type Look,
  pollVideo,
  progressOf,
  secondsOf,
  stageOf,
  submitVideo,
  type Vocabulary,
  videoFault,
} from "./job.ts"

const usualSeconds = 8
const longestPrompt = 4096
const ratios = ["1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3"]
/** The vendor's cost of one second, in ten-billionths of a dollar. */
const ticksPerSecond = 500_000_000
const video = /\/videos\/([\w-]+)$/
const door = { credential: bearer, refuse: xaiError } as const

/** xAI's Grok Imagine. Others submit to the same path, so this comes after them. */
export const xai: readonly Protocol[] = [
  { ...door, method: "POST", ending: "/videos/generations", answer: submitReply },
  {
    ...door,
    method: "GET",
    ending: video,
    isFor: (request) => request.memory.videos.get(requestId(request))?.speaker === "xai" || isNamed(request, "xai"),
    answer: pollReply,
    instead: (request) => videoFault(request, requestId(request)),
  },
]

const words: Vocabulary = {
  queued: "pending",
  running: "pending",
  success: "done",
  no_url: "done",
  moderated: "done",
  failure: "failed",
  cancelled: "failed",
  expired: "expired",
  odd_status: "paused",
}

/** What xAI says with each status: code, text. */
const usual: Readonly<Record<number, readonly [code: string, error: string]>> = {
  400: ["Client specified an invalid argument", "Invalid request."],
  401: ["Unauthenticated", "Incorrect API key provided. You can obtain an API key from https://console.x.ai."],
  403: ["The caller does not have permission to execute the specified operation", "Forbidden."],
  404: ["Some requested entity was not found", "The requested video was not found."],
  429: ["Some resource has been exhausted", "Too many requests."],
  503: ["The service is currently unavailable", "The model is at capacity."],
}

function xaiError(status: number, message?: string): Reply {
  // What the body cannot be read as is told by another part of the service, in a shape of its own.
  if (status === 422) return jsonReply(422, { error: message ?? "Failed to deserialize the JSON body." })
  const [code, error] = usual[status] ?? ["Internal error", "An internal error has occurred."]
  return jsonReply(status, { code, error: message ?? error })
}

function requestId(request: VendorRequest): string {
  return video.exec(pathOf(request))?.[1] ?? ""
}

function submitReply(request: VendorRequest, step: Behaviour): Reply {
  const body = bodyOf(request)
  if (body === null) return xaiError(422)
  const { model, prompt, duration = usualSeconds } = body
  const refusal = shapeRefusal(body) ?? valueRefusal(body)
  if (refusal !== null) return refusal
  const ask = { prompt: String(prompt), seconds: Number(duration), asked: { model } }
  const asked = { speaker: "xai", makeId: () => crypto.randomUUID(), ask }
  return submitVideo(request, step, asked, ({ id }) => jsonReply(200, { request_id: id }))
}

function shapeRefusal({ model, prompt, duration, image }: Body): Reply | null {
  const into = "Failed to deserialize the JSON body into the target type:"
  for (const [name, value] of Object.entries({ model, prompt })) {
    if (!isText(value)) return xaiError(422, `${into} missing field \`${name}\``)
  }
  if (duration !== undefined && !Number.isInteger(duration))
    return xaiError(422, `${into} duration: expected an integer`)
  return image === undefined || isObject(image) ? null : xaiError(422, `${into} image: expected an object`)
}

function valueRefusal({
  model,
  prompt,
  duration,
  resolution,
  aspect_ratio,
  image,
  reference_images,
}: Body): Reply | null {
  if (!String(model).startsWith("grok-imagine-video")) return xaiError(404, `The model ${model} does not exist.`)
  if (!isText(prompt, longestPrompt)) return xaiError(400, "The prompt is too long.")
  if (duration !== undefined && !isWhole(duration, 1, 15)) return xaiError(400, "duration must be between 1 and 15.")
  const isNewer = String(model).startsWith("grok-imagine-video-1.5")
  const tiers = isNewer && reference_images === undefined ? ["480p", "720p", "1080p"] : ["480p", "720p"]
  if (!isNoneOr(resolution, tiers)) return xaiError(400, `resolution must be one of ${tiers.join(", ")}.`)
  if (!isNoneOr(aspect_ratio, ratios)) return xaiError(400, `aspect_ratio must be one of ${ratios.join(", ")}.`)
  if (image === undefined) return null
  if (reference_images !== undefined) return xaiError(400, "image and reference_images exclude each other.")
  return isObject(image) && isPictureUrl(image.url) ? null : xaiError(400, "image.url is not valid.")
}

function pollReply(request: VendorRequest): Reply {
  const job = findVideo(request, "xai", requestId(request))
  if (job === undefined) return xaiError(404)
  const look = pollVideo(job, words)
  // Before work has begun there is not even a body.
  if (stageOf(job) === "queued" && look.word === words.queued) return wholeReply(202, "", [])
  if (!isOver(look.stage)) return jsonReply(202, { status: look.word, progress: percent(job) })
  return jsonReply(200, endingOf(request, job, look))
}

function percent(job: VideoJob): number {
  return Math.floor(100 * progressOf(job))
}

function endingOf(request: VendorRequest, job: VideoJob, { stage, word }: Look): object {
  const { model } = job.ask.asked
  const failed = { status: word, video: { duration: 0, respect_moderation: true }, model: "" }
  if (stage === "failure") {
    return { ...failed, error: { code: "internal_error", message: job.plan.message ?? "Video generation failed." } }
  }
  if (stage === "cancelled")
    return { ...failed, error: { code: "cancelled", message: job.plan.message ?? "Cancelled." } }
  if (stage === "expired" || stage === "odd_status") return { status: word, model }
  const seconds = secondsOf(job)
  return {
    status: word,
    video: {
      ...(stage === "success" ? { url: resultUrl(request, job) } : {}),
      ...(job.plan.reports === false ? {} : { duration: seconds }),
      respect_moderation: stage !== "moderated",
    },
    model,
    usage: { cost_in_usd_ticks: Math.round(seconds * ticksPerSecond) },
    progress: 100,
  }
}
