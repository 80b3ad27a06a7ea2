import type { Behaviour } from "../../behaviour.ts"
import type { VideoJob } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { digitsId } from "../ids.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { coverUrl, resultUrl } from "./cdn.ts"
import { keyAfter, queryOf } from "./fields.ts"
import {
  findVideo,
  type Look,
  lookAt,
  pollVideo,
  type Stage,
  secondsOf,
  stageOf,
  submitVideo,
  type Vocabulary,
  videoFault,
} from "./job.ts"
import { readViduAsk } from "./vidu-ask.ts"
import { viduError, viduRefusal } from "./vidu-errors.ts"

const door = { credential: keyAfter("Token"), refuse: viduRefusal } as const
const creations = /\/ent\/v2\/tasks\/([\w-]+)\/creations$/
const cancel = /\/ent\/v2\/tasks\/([\w-]+)\/cancel$/

/** Vidu: the poll tells the film, and only the list of tasks its length. */
export const vidu: readonly Protocol[] = [
  {
    ...door,
    method: "POST",
    ending: /\/ent\/v2\/(?:text2video|img2video|start-end2video|reference2video)$/,
    answer: submitReply,
  },
  {
    ...door,
    method: "GET",
    ending: creations,
    answer: pollReply,
    instead: (request) => videoFault(request, creations.exec(pathOf(request))?.[1] ?? ""),
  },
  { ...door, method: "GET", ending: "/ent/v2/tasks", answer: listReply },
  { ...door, method: "POST", ending: cancel, answer: cancelReply },
]

const words: Vocabulary = {
  queued: "queueing",
  running: "processing",
  success: "success",
  no_url: "success",
  failure: "failed",
  moderated: "failed",
  cancelled: "failed",
  expired: "failed",
  odd_status: "paused",
}

const failures: Readonly<Partial<Record<Stage, string>>> = {
  failure: "CreationFailed",
  moderated: "TaskPromptPolicyViolation",
  cancelled: "TaskCanceled",
  expired: "TaskExpired",
}

function submitReply(request: VendorRequest, step: Behaviour): Reply {
  const ask = readViduAsk(request)
  if ("refusal" in ask) return ask.refusal
  const { asked, prompt, seconds } = ask
  return submitVideo(request, step, { speaker: "vidu", makeId: () => digitsId(18), ask }, ({ id, createdAt }) =>
    jsonReply(200, {
      task_id: id,
      state: "created",
      model: asked.model,
      prompt,
      images: asked.images,
      duration: seconds,
      seed: asked.seed,
      aspect_ratio: asked.ratio,
      resolution: asked.resolution,
      payload: asked.payload,
      credits: asked.credits,
      off_peak: asked.offPeak,
      created_at: new Date(createdAt).toISOString(),
    }),
  )
}

function pollReply(request: VendorRequest): Reply {
  const job = findVideo(request, "vidu", creations.exec(pathOf(request))?.[1] ?? "")
  if (job === undefined) return viduError(404, "TaskNotFound", "task not found")
  const look = pollVideo(job, words)
  return jsonReply(200, { ...stateOf(job, look), creations: creationsOf(request, job, look.stage).map(withoutFilm) })
}

function stateOf(job: VideoJob, { stage, word }: Look): object {
  const { credits, payload, offPeak } = job.ask.asked
  const err_code = failures[stage] === undefined ? "" : (job.plan.message ?? failures[stage])
  return { id: job.id, state: word, err_code, credits, payload, bgm: false, off_peak: offPeak }
}

interface Creation {
  readonly id: string
  readonly url: string
  readonly cover_url: string
  readonly watermarked_url: string
  readonly video: object
}

function creationsOf(request: VendorRequest, job: VideoJob, stage: Stage): Creation[] {
  if (stage !== "success") return []
  const url = resultUrl(request, job)
  const duration = job.plan.reports === false ? {} : { duration: secondsOf(job) }
  const video = { ...duration, fps: 24, resolution: { width: 1280, height: 720 } }
  return [{ id: `${job.id}1`, url, cover_url: coverUrl(request, job), watermarked_url: url, video }]
}

function withoutFilm({ video: _, ...creation }: Creation): object {
  return creation
}

function listReply(request: VendorRequest): Reply {
  const ids = queryOf(request)
    .getAll("task_ids")
    .flatMap((list) => list.split(","))
  const tasks = ids.flatMap((id) => {
    const job = findVideo(request, "vidu", id)
    if (job === undefined) return []
    const look = lookAt(job, words)
    const { model, resolution, ratio } = job.ask.asked
    const asked = { model, prompt: job.ask.prompt, duration: job.ask.seconds, resolution, aspect_ratio: ratio }
    return [{ ...stateOf(job, look), ...asked, creations: creationsOf(request, job, look.stage) }]
  })
  return jsonReply(200, { next_page_token: "", tasks })
}

/** Only tasks for the quiet hours that have not begun can be taken back. */
function cancelReply(request: VendorRequest): Reply {
  const job = findVideo(request, "vidu", cancel.exec(pathOf(request))?.[1] ?? "")
  if (job === undefined) return viduError(404, "TaskNotFound", "task not found")
  if (job.ask.asked.offPeak !== true || stageOf(job) !== "queued") {
    return viduError(400, "TaskCanNotCancel", "only queueing off-peak tasks can be cancelled")
  }
  job.cancelledAt = Date.now()
  return jsonReply(200, {})
}
