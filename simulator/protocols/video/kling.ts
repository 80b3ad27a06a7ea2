import type { Behaviour } from "../../behaviour.ts"
import type { VideoJob } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { digitsId } from "../ids.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { resultUrl } from "./cdn.ts"
import { type Body, bodyOf, isNoneOr, isText, isWhole, queryOf, unitsFor } from "./fields.ts"
import {
  findByExternalId,
  findVideo,
  isOver,
  type Look,
  lookAt,
  pollVideo,
  secondsOf,
  submitVideo,
  updatedAt,
  type Vocabulary,
  videoFault,
  videosOf,
} from "./job.ts"
import { klingError, klingRefusal } from "./kling-errors.ts"
import { klingCredential, klingUnauthorized } from "./kling-key.ts"

const longestPrompt = 2500
const kinds = "text2video|image2video"
const one = new RegExp(`/videos/(${kinds})/([\\w-]+)$`)
const all = new RegExp(`/videos/(${kinds})$`)

const door = { credential: klingCredential, unauthorized: klingUnauthorized, refuse: klingRefusal } as const

/** Kling: a task is asked for at the path it was submitted to, by its own id or by the caller's. */
export const kling: readonly Protocol[] = [
  { ...door, method: "POST", ending: all, answer: submitReply },
  {
    ...door,
    method: "GET",
    ending: one,
    answer: pollReply,
    instead: (request) => videoFault(request, named(request)?.id ?? ""),
  },
  { ...door, method: "GET", ending: all, answer: listReply },
]

const words: Vocabulary = {
  queued: "submitted",
  running: "processing",
  success: "succeed",
  no_url: "succeed",
  failure: "failed",
  moderated: "failed",
  cancelled: "failed",
  expired: "failed",
  odd_status: "paused",
}

const reasons: Readonly<Partial<Record<Look["stage"], string>>> = {
  failure: "Task execution failed",
  moderated: "Failure to pass the risk control system",
  cancelled: "Task was cancelled",
}

function kindOf(request: VendorRequest): string {
  return (one.exec(pathOf(request)) ?? all.exec(pathOf(request)))?.[1] ?? ""
}

/** The task at a path, if it was submitted to the same one. */
function named(request: VendorRequest): VideoJob | undefined {
  const id = one.exec(pathOf(request))?.[2] ?? ""
  const job = findVideo(request, "kling", id) ?? findByExternalId(request, "kling", id)
  return job?.ask.asked.kind === kindOf(request) ? job : undefined
}

function submitReply(request: VendorRequest, step: Behaviour): Reply {
  const body = bodyOf(request)
  const kind = kindOf(request)
  const problem = body === null ? "the body is not JSON" : problemOf(body, kind)
  if (body === null || problem !== null) return klingError(1201, problem ?? undefined)
  const { external_task_id: externalId, prompt, duration = "5", model_name: model, mode } = body
  const own = isText(externalId) ? { externalId } : {}
  if (own.externalId !== undefined && findByExternalId(request, "kling", own.externalId) !== undefined) {
    return klingError(1201, `external_task_id ${own.externalId} already exists`)
  }
  const ask = { prompt: String(prompt ?? ""), seconds: Number(duration), ...own, asked: { kind, model, mode } }
  return submitVideo(request, step, { speaker: "kling", makeId: () => digitsId(18), ask }, (job) =>
    jsonReply(200, envelope(taskOf(request, job, { stage: "queued", word: words.queued }))),
  )
}

function problemOf(body: Body, kind: string): string | null {
  const { model_name: model = "kling-v1", prompt, negative_prompt, duration = "5", mode, sound, aspect_ratio } = body
  if (!isText(model) || !model.startsWith("kling-")) return `model_name value '${model}' is invalid`
  const isThird = model.startsWith("kling-v3")
  if (kind === "text2video" && !isText(prompt)) return "prompt can not be empty"
  for (const [name, text] of Object.entries({ prompt, negative_prompt })) {
    if (text !== undefined && (typeof text !== "string" || text.length > longestPrompt)) return `${name} is invalid`
  }
  if (typeof duration !== "string") return "duration must be a string"
  if (!(isThird ? /^\d+$/.test(duration) && isWhole(Number(duration), 3, 15) : ["5", "10"].includes(duration))) {
    return `duration value '${duration}' is invalid`
  }
  if (!isNoneOr(mode, isThird ? ["std", "pro", "4k"] : ["std", "pro"])) return `mode value '${mode}' is invalid`
  if (!isNoneOr(sound, ["on", "off"])) return `sound value '${sound}' is invalid`
  return kind === "text2video" ? ratioProblem(aspect_ratio) : picturesProblem(body)
}

function ratioProblem(ratio: unknown): string | null {
  return isNoneOr(ratio, ["16:9", "9:16", "1:1"]) ? null : `aspect_ratio value '${ratio}' is invalid`
}

/** Pictures are addresses or bare base64; the film takes its shape from them. */
function picturesProblem({ image, image_tail, aspect_ratio }: Body): string | null {
  if (image === undefined && image_tail === undefined) return "image and image_tail can not both be empty"
  if (aspect_ratio !== undefined) return "aspect_ratio is not supported for image2video"
  const given = [image, image_tail].filter((picture) => picture !== undefined)
  const isFine = given.every((picture) => isText(picture) && /^(?:https?:\/\/|[A-Za-z0-9+/]+={0,2}$)/.test(picture))
  return isFine ? null : "File is not in a valid base64 format"
}

function pollReply(request: VendorRequest): Reply {
  const job = named(request)
  const look = job === undefined ? null : pollVideo(job, words)
  if (job === undefined || look === null || look.stage === "expired") return klingError(1203, "Task not found")
  return jsonReply(200, envelope(taskOf(request, job, look)))
}

function listReply(request: VendorRequest): Reply {
  const query = queryOf(request)
  const externalId = query.get("external_task_id")
  const size = Number(query.get("pageSize") ?? 30)
  const start = (Number(query.get("pageNum") ?? 1) - 1) * size
  const own = externalId === null ? undefined : findByExternalId(request, "kling", externalId)
  const known = externalId === null ? videosOf(request, "kling") : own === undefined ? [] : [own]
  const tasks = known.filter((job) => job.ask.asked.kind === kindOf(request)).slice(start, start + size)
  return jsonReply(200, envelope(tasks.map((job) => taskOf(request, job, lookAt(job, words)))))
}

function envelope(data: object): object {
  return { code: 0, message: "SUCCEED", request_id: crypto.randomUUID(), data }
}

function taskOf(request: VendorRequest, job: VideoJob, { stage, word }: Look): object {
  const { plan, ask } = job
  const reason = reasons[stage] === undefined ? "" : (plan.message ?? reasons[stage])
  return {
    task_id: job.id,
    task_status: word,
    task_status_msg: reason,
    task_info: ask.externalId === undefined ? {} : { external_task_id: ask.externalId },
    ...(isOver(stage) ? endingOf(request, job, stage) : {}),
    created_at: job.createdAt,
    updated_at: updatedAt(job),
  }
}

function endingOf(request: VendorRequest, job: VideoJob, stage: Look["stage"]): object {
  if (stage === "no_url") return { final_unit_deduction: "0", task_result: { videos: [] } }
  if (stage !== "success") return {}
  const seconds = secondsOf(job)
  const duration = Number.isInteger(seconds) ? seconds.toFixed(1) : String(seconds)
  const video = { id: digitsId(18), url: resultUrl(request, job), ...(job.plan.reports === false ? {} : { duration }) }
  return { final_unit_deduction: String(unitsFor(seconds, 0.2)), task_result: { videos: [video] } }
}
