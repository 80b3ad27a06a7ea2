import type { Behaviour } from "../../behaviour.ts"
import type { VideoJob } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { valuesOf } from "../../wire/request-parser.ts"
import { dashscopeError, inspectionWords } from "../image-jobs/dashscope-errors.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { resultUrl } from "./cdn.ts"
import { readDashscopeAsk } from "./dashscope-ask.ts"
import { bearer } from "./fields.ts"
import {
  findVideo,
  finishedAt,
  isOver,
  type Look,
  pollVideo,
  type Stage,
  secondsOf,
  stageOf,
  startedAt,
  submitVideo,
  type Vocabulary,
  videoFault,
} from "./job.ts"

const door = { credential: bearer, refuse: dashscopeError } as const

/** Alibaba's Wan. Its tasks are asked for at the same address as the image tasks. */
export const dashscopeVideo: readonly Protocol[] = [
  {
    ...door,
    method: "POST",
    ending: /\/services\/aigc\/(?:video-generation|image2video)\/video-synthesis$/,
    answer: submitReply,
  },
  {
    ...door,
    method: "GET",
    ending: /\/api\/v1\/tasks\/[\w-]+$/,
    isFor: isVideo,
    answer: pollReply,
    instead: (request) => videoFault(request, taskId(request)),
  },
  { ...door, method: "POST", ending: /\/api\/v1\/tasks\/[\w-]+\/cancel$/, isFor: isVideo, answer: cancelReply },
]

const words: Vocabulary = {
  queued: "PENDING",
  running: "RUNNING",
  success: "SUCCEEDED",
  no_url: "SUCCEEDED",
  failure: "FAILED",
  moderated: "FAILED",
  cancelled: "CANCELED",
  expired: "UNKNOWN",
  odd_status: "PAUSED",
}

function taskId(request: VendorRequest): string {
  return /\/tasks\/([\w-]+)/.exec(pathOf(request))?.[1] ?? ""
}

function isVideo(request: VendorRequest): boolean {
  return request.memory.videos.get(taskId(request))?.speaker === "dashscope"
}

function submitReply(request: VendorRequest, step: Behaviour): Reply {
  if (valuesOf(request.headers, "x-dashscope-async")[0] !== "enable") {
    return dashscopeError(403, "current user api does not support synchronous calls.")
  }
  const ask = readDashscopeAsk(request)
  if ("refusal" in ask) return ask.refusal
  const asked = { speaker: "dashscope", makeId: () => crypto.randomUUID(), ask }
  return submitVideo(request, step, asked, ({ id }) =>
    jsonReply(200, { output: { task_status: words.queued, task_id: id }, request_id: crypto.randomUUID() }),
  )
}

function pollReply(request: VendorRequest): Reply {
  const id = taskId(request)
  const job = findVideo(request, "dashscope", id)
  const body =
    job === undefined
      ? { output: { task_id: id, task_status: "UNKNOWN" } }
      : taskOf(request, job, pollVideo(job, words))
  return jsonReply(200, { request_id: crypto.randomUUID(), ...body })
}

function taskOf(request: VendorRequest, job: VideoJob, { stage, word }: Look): object {
  const head = { task_id: job.id, task_status: word }
  if (stage === "expired") return { output: head }
  const begun = stage === "queued" ? {} : { scheduled_time: timeText(startedAt(job)) }
  const output = { ...head, submit_time: timeText(job.createdAt), ...begun }
  if (!isOver(stage) || stage === "odd_status") return { output }
  const ended = { ...output, end_time: timeText(finishedAt(job)) }
  if (stage !== "success" && stage !== "no_url") return { output: { ...ended, ...failureOf(job, stage) } }
  const prompts = { orig_prompt: job.ask.prompt, actual_prompt: job.ask.prompt }
  const result = stage === "success" ? { video_url: resultUrl(request, job) } : {}
  return { output: { ...ended, ...prompts, ...result }, usage: usageOf(job) }
}

function failureOf({ plan }: VideoJob, stage: Stage): object {
  if (stage === "cancelled") return {}
  if (stage === "moderated") return { code: "DataInspectionFailed", message: plan.message ?? inspectionWords }
  return { code: "InternalError.Algo", message: plan.message ?? "The task failed." }
}

/** The oldest models count otherwise. */
function usageOf(job: VideoJob): object {
  const { model, size, tier } = job.ask.asked
  const seconds = secondsOf(job)
  const isReported = job.plan.reports !== false
  if (/^wanx?2\.[12]/.test(String(model))) {
    return { video_count: 1, video_ratio: "standard", ...(isReported ? { video_duration: seconds } : {}) }
  }
  const lengths = { duration: seconds, output_video_duration: Math.round(seconds), input_video_duration: 0 }
  return { ...(isReported ? lengths : {}), video_count: 1, SR: tier, ...(size === undefined ? {} : { size }) }
}

/** `2026-01-01 10:00:00.000` */
function timeText(time: number): string {
  return new Date(time).toISOString().replace("T", " ").replace("Z", "")
}

function cancelReply(request: VendorRequest): Reply {
  const job = findVideo(request, "dashscope", taskId(request))
  if (job === undefined || stageOf(job) !== "queued") {
    const message = "Failed to cancel the task, please confirm if the task is in PENDING status."
    return dashscopeError(400, message, "UnsupportedOperation")
  }
  job.cancelledAt = Date.now()
  return jsonReply(200, { request_id: crypto.randomUUID() })
}
