import { isObject } from "../../../src/core/json.ts"
import type { Behaviour } from "../../behaviour.ts"
import type { VideoJob } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { digitsId } from "../ids.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { resultUrl } from "./cdn.ts"
import { type Body, bearer, bodyOf, isNoneOr, isPictureUrl, isText, isWhole, queryOf } from "./fields.ts"
import {
  findVideo,
  isOver,
  type Look,
  lookAt,
  pollVideo,
  type Stage,
  secondsOf,
  submitVideo,
  type Vocabulary,
  videoFault,
  videosOf,
} from "./job.ts"
import { minimaxSecondError } from "./minimax-errors.ts"

const usualSeconds = 5
const ratios = ["21:9", "16:9", "4:3", "1:1", "3:4", "9:16"]
const task = /\/v2\/query\/video_generation\/([\w-]+)$/
const door = { credential: bearer, refuse: minimaxSecondError } as const

/** MiniMax H3, the second version: errors have statuses of their own, and the task tells its film. */
export const minimaxSecond: readonly Protocol[] = [
  { ...door, method: "POST", ending: "/v2/video_generation", answer: submitReply },
  {
    ...door,
    method: "GET",
    ending: task,
    answer: pollReply,
    instead: (request) => videoFault(request, taskId(request)),
  },
  { ...door, method: "GET", ending: "/v2/query/video_generation", answer: listReply },
]

const words: Vocabulary = {
  queued: "queued",
  running: "running",
  success: "succeeded",
  no_url: "succeeded",
  failure: "failed",
  moderated: "failed",
  cancelled: "cancelled",
  expired: "expired",
  odd_status: "paused",
}

const failures: Readonly<Partial<Record<Stage, readonly [code: string, message: string]>>> = {
  failure: ["1000", "unknown error"],
  moderated: ["1027", "output new_sensitive"],
}

function taskId(request: VendorRequest): string {
  return task.exec(pathOf(request))?.[1] ?? ""
}

function submitReply(request: VendorRequest, step: Behaviour): Reply {
  const body = bodyOf(request)
  const problem = body === null ? "the body is not JSON" : problemOf(body)
  if (body === null || problem !== null) return minimaxSecondError(400, `invalid params, ${problem}`)
  const { model, duration = usualSeconds, resolution = "768P", ratio = "adaptive" } = body
  const prompt = itemsOf(body)
    .map(({ text }) => text ?? "")
    .join("")
  const ask = { prompt, seconds: Number(duration), asked: { model, resolution, ratio } }
  const makeId = (): string => `task-${digitsId(15)}`
  return submitVideo(request, step, { speaker: "minimax-second", makeId, ask }, ({ id }) =>
    jsonReply(200, { task_id: id }),
  )
}

function itemsOf({ content }: Body): Body[] {
  return Array.isArray(content) ? content.filter(isObject) : []
}

function problemOf(body: Body): string | null {
  const { model, duration, resolution, ratio } = body
  if (model !== "MiniMax-H3") return `model ${model} does not exist`
  const items = itemsOf(body)
  const texts = items.filter(({ type, text }) => type === "text" && isText(text))
  if (texts.length !== 1) return "content must have exactly one text"
  const pictures = items.filter(({ type }) => type === "image_url")
  const isFine = pictures.every(({ image_url: image }) => isObject(image) && isPictureUrl(image.url))
  if (!isFine) return "content has an image_url without an address"
  if (!isNoneOr(resolution, ["768P", "2K"])) return `resolution ${resolution} is not supported`
  if (duration !== undefined && !isWhole(duration, 5, 15))
    return `duration ${JSON.stringify(duration)} is not supported`
  if (pictures.length > 0) return isNoneOr(ratio, [...ratios, "adaptive"]) ? null : `ratio ${ratio} is not supported`
  return ratios.includes(String(ratio)) ? null : "ratio is required"
}

function pollReply(request: VendorRequest): Reply {
  const job = findVideo(request, "minimax-second", taskId(request))
  if (job === undefined) return minimaxSecondError(404)
  return jsonReply(200, { task: taskOf(request, job, pollVideo(job, words)) })
}

function listReply(request: VendorRequest): Reply {
  const query = queryOf(request)
  const size = Number(query.get("page_size") ?? 10)
  const start = (Number(query.get("page_num") ?? 1) - 1) * size
  const known = videosOf(request, "minimax-second")
  const tasks = known.slice(start, start + size).map((job) => taskOf(request, job, lookAt(job, words)))
  return jsonReply(200, { tasks, total: known.length })
}

function taskOf(request: VendorRequest, job: VideoJob, { stage, word }: Look): object {
  const { model, resolution, ratio } = job.ask.asked
  return { id: job.id, model, status: word, resolution, ratio, ...(isOver(stage) ? endingOf(request, job, stage) : {}) }
}

function endingOf(request: VendorRequest, job: VideoJob, stage: Stage): object {
  const [code, message] = failures[stage] ?? []
  if (code !== undefined) return { error: { code, message: job.plan.message ?? message } }
  if (stage !== "success" && stage !== "no_url") return {}
  const seconds = secondsOf(job)
  const usage = { total_seconds: seconds, input_seconds: 0, output_seconds: seconds }
  return {
    content: stage === "success" ? { url: resultUrl(request, job) } : {},
    ...(job.plan.reports === false ? {} : { duration: Math.round(seconds), usage }),
  }
}
