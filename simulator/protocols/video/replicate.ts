import type { Behaviour } from "../../behaviour.ts"
import type { VideoJob } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { type HeaderPair, valuesOf } from "../../wire/request-parser.ts"
import { credentialsOf } from "../credentials.ts"
import { headDelay } from "../event-stream.ts"
import { plainId } from "../ids.ts"
import { replicateCreate, replicateError } from "../image-jobs/replicate.ts"
import { homeOf } from "../links.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { resultUrl } from "./cdn.ts"
import { bearer, bodyOf, isText, partOf } from "./fields.ts"
import {
  findVideo,
  finishedAt,
  isOver,
  type Look,
  lookAt,
  pollVideo,
  type Stage,
  stageOf,
  startedAt,
  submitVideo,
  type Vocabulary,
  videoFault,
  workSeconds,
} from "./job.ts"

const usualSeconds = 5
const longestWaitSeconds = 60
const videoModels = /video|veo|sora|seedance|hailuo|pixverse|vidu|wan-?[\d.]|ray-|ltx|kling|gen4/
const door = { credential: bearer, refuse: replicateError, isFor: isVideo } as const

/** Replicate predictions with a film at their end. Images go the same ways; a job's kind is known from its submit. */
export const replicateVideo: readonly Protocol[] = [
  {
    ...replicateCreate,
    credential: (request) =>
      bearer(request) ?? (isVideoModel(request) ? undefined : (credentialsOf(request.headers)[0] ?? "")),
    answer: (request, step) =>
      step.kind === "video_job" || (step.kind !== "image_job" && isVideoModel(request))
        ? createReply(request, step)
        : replicateCreate.answer(request, step),
  },
  {
    ...door,
    method: "GET",
    ending: /\/predictions\/\w+$/,
    answer: getReply,
    instead: (request) => videoFault(request, predictionId(request)),
  },
  { ...door, method: "POST", ending: /\/predictions\/\w+\/cancel$/, answer: cancelReply },
]

const words: Vocabulary = {
  queued: "starting",
  running: "processing",
  success: "succeeded",
  no_url: "succeeded",
  expired: "succeeded",
  failure: "failed",
  moderated: "failed",
  cancelled: "canceled",
  odd_status: "paused",
}

const failures: Readonly<Partial<Record<Stage, string>>> = {
  failure: "Prediction failed.",
  moderated: "The input or output was flagged as sensitive. Please try again with different inputs. (E005)",
}

function isVideoModel(request: VendorRequest): boolean {
  return videoModels.test(modelOf(request))
}

function modelOf(request: VendorRequest): string {
  return /\/models\/([^/]+\/[^/]+)\/predictions$/.exec(pathOf(request))?.[1] ?? ""
}

function predictionId(request: VendorRequest): string {
  return /\/predictions\/(\w+)/.exec(pathOf(request))?.[1] ?? ""
}

function isVideo(request: VendorRequest): boolean {
  return request.memory.videos.get(predictionId(request))?.speaker === "replicate"
}

function createReply(request: VendorRequest, step: Behaviour): Reply {
  const body = bodyOf(request)
  const input = partOf(body ?? {}, "input")
  const { prompt, duration = usualSeconds } = input
  if (!isText(prompt)) return replicateError(422)
  if (typeof duration !== "number") {
    return replicateError(422, `- input.duration: Invalid type. Expected: integer, given: ${typeof duration}\n`)
  }
  const model = modelOf(request) || "simulated/version"
  const ask = { prompt, seconds: duration, asked: { input, model } }
  return submitVideo(request, step, { speaker: "replicate", makeId: () => plainId().slice(6), ask }, (job) => {
    const waitMs = preferredWaitMs(request.headers)
    const heldMs = waitMs === null ? 0 : Math.min(waitMs, finishedAt(job) - job.createdAt)
    const look = lookAt(job, words, job.createdAt + heldMs)
    const status = waitMs !== null && !isOver(look.stage) ? 202 : 201
    return { ...jsonReply(status, predictionOf(request, job, look)), ...headDelay(heldMs) }
  })
}

/** How long `Prefer: wait=N` asks the answer to be held, or null where it does not. */
function preferredWaitMs(headers: readonly HeaderPair[]): number | null {
  const asked = /^wait(?:=(\d+))?$/.exec(valuesOf(headers, "prefer")[0] ?? "")
  return asked === null ? null : 1000 * Math.min(Number(asked[1] ?? longestWaitSeconds), longestWaitSeconds)
}

function getReply(request: VendorRequest): Reply {
  const job = findVideo(request, "replicate", predictionId(request))
  return job === undefined ? replicateError(404) : jsonReply(200, predictionOf(request, job, pollVideo(job, words)))
}

function predictionOf(request: VendorRequest, job: VideoJob, { stage, word }: Look): object {
  const prefix = pathOf(request).replace(/\/(?:models|predictions)\/?.*$/, "")
  const self = `${homeOf(request, job.plan.pollHost)}${prefix}/predictions/${job.id}`
  const [created, started, finished] = [job.createdAt, startedAt(job), finishedAt(job)]
  const timeText = (time: number): string => new Date(time).toISOString()
  const isDone = isOver(stage) && stage !== "odd_status"
  // The time that was computed for, which is not the length of the film.
  const metrics = { predict_time: workSeconds(job), total_time: (finished - created) / 1000 }
  return {
    id: job.id,
    model: job.ask.asked.model,
    version: "hidden",
    input: job.ask.asked.input,
    logs: "",
    output: outputOf(request, job, stage),
    data_removed: stage === "expired",
    error: failures[stage] === undefined ? null : (job.plan.message ?? failures[stage]),
    status: word,
    created_at: timeText(created),
    started_at: stage === "queued" || started > finished ? null : timeText(started),
    completed_at: isDone ? timeText(finished) : null,
    ...(isDone ? { metrics } : {}),
    urls: { get: self, cancel: `${self}/cancel`, web: `https://replicate.com/p/${job.id}` },
  }
}

function outputOf(request: VendorRequest, job: VideoJob, stage: Stage): string | readonly string[] | null {
  const isList = job.plan.shape === "list"
  if (stage !== "success") return stage === "no_url" && isList ? [] : null
  const url = resultUrl(request, job)
  return isList ? [url] : url
}

function cancelReply(request: VendorRequest): Reply {
  const job = findVideo(request, "replicate", predictionId(request))
  if (job === undefined) return replicateError(404)
  if (!isOver(stageOf(job))) job.cancelledAt = Date.now()
  return jsonReply(200, predictionOf(request, job, lookAt(job, words)))
}
