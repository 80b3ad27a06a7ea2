import type { Behaviour } from "../../behaviour.ts"
import type { VideoJob } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { randomOf } from "../ids.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { readArkAsk } from "./ark-ask.ts"
import { arkError, arkRefusal } from "./ark-errors.ts"
import { resultUrl } from "./cdn.ts"
import { bearer, queryOf } from "./fields.ts"
import {
  findVideo,
  forgetVideo,
  isOver,
  type Look,
  lookAt,
  pollVideo,
  type Stage,
  secondsOf,
  stageOf,
  submitVideo,
  updatedAt,
  type Vocabulary,
  videoFault,
  videosOf,
} from "./job.ts"

const framesPerSecond = 24
const tasks = "/contents/generations/tasks"
const one = /\/contents\/generations\/tasks\/([\w-]+)$/
const door = { credential: bearer, refuse: arkRefusal } as const

/** Seedance, as Volcengine Ark and BytePlus serve it. */
export const ark: readonly Protocol[] = [
  { ...door, method: "POST", ending: tasks, answer: submitReply },
  {
    ...door,
    method: "GET",
    ending: one,
    answer: pollReply,
    instead: (request) => videoFault(request, taskId(request)),
  },
  { ...door, method: "GET", ending: tasks, answer: listReply },
  { ...door, method: "DELETE", ending: one, answer: deleteReply },
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
  failure: ["InternalServiceError", "The service encountered an unexpected internal error."],
  moderated: [
    "OutputVideoSensitiveContentDetected",
    "The request failed because the output video may contain sensitive information.",
  ],
}

function taskId(request: VendorRequest): string {
  return one.exec(pathOf(request))?.[1] ?? ""
}

/** `cgt-20260606160057-6bbjd` */
function newId(): string {
  const time = new Date().toISOString().replaceAll(/\D/g, "").slice(0, 14)
  return `cgt-${time}-${randomOf("abcdefghijklmnopqrstuvwxyz0123456789", 5)}`
}

function submitReply(request: VendorRequest, step: Behaviour): Reply {
  const ask = readArkAsk(request)
  if ("refusal" in ask) return ask.refusal
  return submitVideo(request, step, { speaker: "ark", makeId: newId, ask }, ({ id }) => jsonReply(200, { id }))
}

function pollReply(request: VendorRequest): Reply {
  const job = findVideo(request, "ark", taskId(request))
  return job === undefined ? arkError(404) : jsonReply(200, taskOf(request, job, pollVideo(job, words)))
}

function listReply(request: VendorRequest): Reply {
  const query = queryOf(request)
  const ids = query.getAll("filter.task_ids")
  const status = query.get("filter.status")
  const size = Number(query.get("page_size") ?? 10)
  const start = (Number(query.get("page_num") ?? 1) - 1) * size
  const known = ids.length > 0 ? ids.flatMap((id) => findVideo(request, "ark", id) ?? []) : videosOf(request, "ark")
  const fitting = known.filter((job) => status === null || lookAt(job, words).word === status)
  const items = fitting.slice(start, start + size).map((job) => taskOf(request, job, pollVideo(job, words)))
  return jsonReply(200, { total: fitting.length, items })
}

/** Cancels what has not begun, forgets what is over, and leaves alone what is in between. */
function deleteReply(request: VendorRequest): Reply {
  const job = findVideo(request, "ark", taskId(request))
  if (job === undefined) return arkError(404)
  const stage = stageOf(job)
  if (stage === "running") {
    return arkError(409, { code: "InvalidAction.RunningTaskDeletion", message: "The running task cannot be deleted." })
  }
  if (stage === "queued") job.cancelledAt = Date.now()
  else forgetVideo(request, job)
  return jsonReply(200, {})
}

function taskOf(request: VendorRequest, job: VideoJob, { stage, word }: Look): object {
  const { model } = job.ask.asked
  const times = { created_at: Math.floor(job.createdAt / 1000), updated_at: Math.floor(updatedAt(job) / 1000) }
  return { id: job.id, model, status: word, ...(isOver(stage) ? endingOf(request, job, stage) : {}), ...times }
}

function endingOf(request: VendorRequest, job: VideoJob, stage: Stage): object {
  const [code, message] = failures[stage] ?? []
  if (code !== undefined) return { error: { code, message: job.plan.message ?? message } }
  if (stage !== "success" && stage !== "no_url") return {}
  const { resolution, ratio, generate_audio, pixels } = job.ask.asked
  const tokens = Math.round((Number(pixels) * framesPerSecond * secondsOf(job)) / 1024)
  return {
    // The address is taken back after a day.
    content: stage === "success" ? { video_url: resultUrl(request, job) } : null,
    usage: { completion_tokens: tokens, total_tokens: tokens },
    seed: 78674,
    resolution,
    ratio,
    ...lengthOf(job),
    service_tier: "default",
    execution_expires_after: 172_800,
    generate_audio,
    draft: false,
  }
}

/** Told in frames where it was asked for in frames. */
function lengthOf(job: VideoJob): object {
  const framespersecond = framesPerSecond
  if (job.plan.reports === false) return { framespersecond }
  const seconds = secondsOf(job)
  return job.ask.asked.inFrames === true
    ? { frames: Math.round(seconds * framesPerSecond), framespersecond }
    : { duration: Math.round(seconds), framespersecond }
}
