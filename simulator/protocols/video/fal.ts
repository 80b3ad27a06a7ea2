import type { Behaviour } from "../../behaviour.ts"
import type { VideoJob } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { credentialsOf } from "../credentials.ts"
import { falSubmit } from "../image-jobs/fal.ts"
import { falError, falRefusal } from "../image-jobs/fal-errors.ts"
import { homeOf } from "../links.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { resultBytes, resultUrl } from "./cdn.ts"
import { isVideoApp, readFalAsk } from "./fal-ask.ts"
import { keyAfter, queryOf } from "./fields.ts"
import {
  findVideo,
  isOver,
  pollVideo,
  type Stage,
  secondsOf,
  stageOf,
  startedAt,
  submitVideo,
  type Vocabulary,
  videoFault,
  workSeconds,
} from "./job.ts"

const key = keyAfter("Key")
const door = { credential: key, refuse: falRefusal, isFor: isVideo } as const

/** fal's queue with a film at its end. Images go the same ways; a job's kind is known from its submit. */
export const falVideo: readonly Protocol[] = [
  {
    ...falSubmit,
    credential: (request) =>
      key(request) ?? (isVideoApp(request) ? undefined : (credentialsOf(request.headers)[0] ?? "")),
    answer: (request, step) =>
      step.kind === "video_job" || (step.kind !== "image_job" && isVideoApp(request))
        ? submitReply(request, step)
        : falSubmit.answer(request, step),
  },
  {
    ...door,
    method: "GET",
    ending: /\/requests\/[\w-]+\/status$/,
    answer: statusReply,
    instead: (request) => videoFault(request, requestId(request)),
  },
  { ...door, method: "GET", ending: /\/requests\/[\w-]+$/, answer: resultReply },
  { ...door, method: "PUT", ending: /\/requests\/[\w-]+\/cancel$/, answer: cancelReply },
]

/** There is no word for failure: a job that is over is completed, and its result tells. */
const words: Vocabulary = {
  queued: "IN_QUEUE",
  running: "IN_PROGRESS",
  success: "COMPLETED",
  no_url: "COMPLETED",
  failure: "COMPLETED",
  moderated: "COMPLETED",
  cancelled: "COMPLETED",
  expired: "COMPLETED",
  odd_status: "PAUSED",
}

function requestId(request: VendorRequest): string {
  return /\/requests\/([\w-]+)/.exec(pathOf(request))?.[1] ?? ""
}

function isVideo(request: VendorRequest): boolean {
  return request.memory.videos.get(requestId(request))?.speaker === "fal"
}

function submitReply(request: VendorRequest, step: Behaviour): Reply {
  const ask = readFalAsk(request)
  if ("refusal" in ask) return ask.refusal
  return submitVideo(request, step, { speaker: "fal", makeId: () => crypto.randomUUID(), ask }, (job) =>
    labelled(job, jsonReply(200, { status: words.queued, ...factsOf(request, job), queue_position: 0 })),
  )
}

/** Every answer about a job names it in a header too, where fal's own client reads it. */
function labelled({ id }: VideoJob, reply: Reply): Reply {
  return { ...reply, headers: [...reply.headers, ["x-fal-request-id", id]] }
}

/** Its addresses have owner and app only, whatever the app's path. */
function factsOf(request: VendorRequest, { id, ask, plan }: VideoJob): object {
  const self = `${homeOf(request, plan.pollHost)}${ask.asked.app}/requests/${id}`
  return { request_id: id, response_url: self, status_url: `${self}/status`, cancel_url: `${self}/cancel` }
}

/** The app that a request's address names has to be the job's. */
function jobOf(request: VendorRequest): VideoJob | undefined {
  const job = findVideo(request, "fal", requestId(request))
  return job !== undefined && pathOf(request).startsWith(`${job.ask.asked.app}/requests/`) ? job : undefined
}

function statusReply(request: VendorRequest): Reply {
  const job = jobOf(request)
  if (job === undefined) return falError(404, "Request not found", "not_found")
  const { stage, word } = pollVideo(job, words)
  const logs = queryOf(request).get("logs") === "1" && stage !== "queued" ? [logLine(job)] : null
  const state = { status: word, ...factsOf(request, job), ...(stage === "queued" ? { queue_position: 1 } : { logs }) }
  if (!isOver(stage)) return labelled(job, jsonReply(202, state))
  const metrics = { inference_time: workSeconds(job) }
  return labelled(job, jsonReply(200, { ...state, metrics }))
}

function logLine(job: VideoJob): object {
  return { message: "generating", level: "INFO", source: "USER", timestamp: new Date(startedAt(job)).toISOString() }
}

/** The truth about a job that is over. */
function resultReply(request: VendorRequest): Reply {
  const job = jobOf(request)
  return job === undefined
    ? falError(404, "Request not found", "not_found")
    : labelled(job, outcomeOf(request, job, stageOf(job)))
}

function outcomeOf(request: VendorRequest, job: VideoJob, stage: Stage): Reply {
  switch (stage) {
    case "queued":
    case "running":
    case "odd_status":
      return falError(400, "Request is still in progress", "bad_request")
    case "failure":
      return falError(500, job.plan.message ?? "Internal Server Error", "internal_error")
    case "expired":
      return falError(504, job.plan.message ?? "Request timed out", "request_timeout")
    case "cancelled":
      return falError(499, "Request was cancelled by the client", "client_cancelled")
    case "moderated":
      return falRefusal(422, job.plan.message, "content_policy_violation")
    default:
      return jsonReply(200, resultOf(request, job, stage))
  }
}

/** Most models do not tell how long the film is. */
function resultOf(request: VendorRequest, job: VideoJob, stage: Stage): object {
  const seed = 42
  if (stage === "no_url") return job.plan.shape === "list" ? { videos: [], seed } : { video: null, seed }
  const video = {
    url: resultUrl(request, job),
    content_type: "video/mp4",
    file_name: `${job.file}.mp4`,
    file_size: resultBytes(job),
    ...(job.plan.reports === true ? { duration: secondsOf(job), fps: 24, width: 1280, height: 720 } : {}),
  }
  return job.plan.shape === "list" ? { videos: [video], seed } : { video, seed }
}

function cancelReply(request: VendorRequest): Reply {
  const job = jobOf(request)
  if (job === undefined) return jsonReply(404, { status: "NOT_FOUND" })
  if (isOver(stageOf(job))) return jsonReply(400, { status: "ALREADY_COMPLETED" })
  job.cancelledAt = Date.now()
  return jsonReply(202, { status: "CANCELLATION_REQUESTED" })
}
