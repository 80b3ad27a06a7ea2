import type { Behaviour } from "../../behaviour.ts"
import type { VideoAsk, VideoJob } from "../../memory.ts"
import { jsonReply, type Reply, wholeReply } from "../../wire/reply.ts"
import { plainId } from "../ids.ts"
import { picture } from "../pictures.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { errorReply } from "../vendor-errors.ts"
import { filmReply, redirect, resultUrl } from "./cdn.ts"
import { bearer, queryOf } from "./fields.ts"
import {
  findVideo,
  finishedAt,
  forgetVideo,
  isOver,
  type Look,
  lookAt,
  pollVideo,
  progressOf,
  type Stage,
  secondsOf,
  stageOf,
  submitVideo,
  type Vocabulary,
  videoFault,
  videosOf,
} from "./job.ts"
import { readOpenaiAsk } from "./openai-ask.ts"

const daySeconds = 86_400
const one = /\/videos\/([\w-]+)(?:\/content)?$/
const door = { credential: bearer } as const

/** OpenAI's videos protocol, which servers compatible with it speak: the film is behind the key. */
export const openaiVideos: readonly Protocol[] = [
  { ...door, method: "POST", ending: "/videos", answer: submitReply },
  { ...door, method: "GET", ending: "/videos", answer: listReply },
  {
    ...door,
    method: "GET",
    ending: /\/videos\/[\w-]+$/,
    answer: pollReply,
    instead: (request) => videoFault(request, videoId(request)),
  },
  { ...door, method: "DELETE", ending: /\/videos\/[\w-]+$/, answer: deleteReply },
  {
    ...door,
    method: "GET",
    ending: /\/videos\/[\w-]+\/content$/,
    answer: contentReply,
    instead: (request) => findVideo(request, "openai", videoId(request))?.plan.file?.fault,
  },
]

const words: Vocabulary = {
  queued: "queued",
  running: "in_progress",
  success: "completed",
  no_url: "completed",
  expired: "completed",
  failure: "failed",
  moderated: "failed",
  cancelled: "failed",
  odd_status: "paused",
}

const failures: Readonly<Partial<Record<Stage, readonly [code: string, message: string]>>> = {
  failure: ["video_generation_failed", "The video could not be generated."],
  moderated: ["moderation_blocked", "Your request was blocked by our moderation system."],
  cancelled: ["cancelled", "The video was cancelled."],
}

function videoId(request: VendorRequest): string {
  return one.exec(pathOf(request))?.[1] ?? ""
}

function jobOf(request: VendorRequest): VideoJob | undefined {
  return findVideo(request, "openai", videoId(request))
}

function notFound(request: VendorRequest): Reply {
  return errorReply(404, { message: `Video with id '${videoId(request)}' not found.`, code: "not_found" })
}

function submitReply(request: VendorRequest, step: Behaviour): Reply {
  const ask: VideoAsk | { readonly refusal: Reply } = readOpenaiAsk(request)
  if ("refusal" in ask) return ask.refusal
  const makeId = (): string => `video_${plainId()}`
  return submitVideo(request, step, { speaker: "openai", makeId, ask }, (job) =>
    jsonReply(200, videoOf(job, { stage: "queued", word: words.queued })),
  )
}

function pollReply(request: VendorRequest): Reply {
  const job = jobOf(request)
  return job === undefined ? notFound(request) : jsonReply(200, videoOf(job, pollVideo(job, words)))
}

function listReply(request: VendorRequest): Reply {
  const limit = Number(queryOf(request).get("limit") ?? 20)
  const data = videosOf(request, "openai").reverse()
  const page = data.slice(0, limit).map((job) => videoOf(job, lookAt(job, words)))
  return jsonReply(200, { object: "list", data: page, has_more: data.length > page.length })
}

function videoOf(job: VideoJob, { stage, word }: Look): object {
  const { model, size } = job.ask.asked
  const isDone = words[stage] === words.success
  const completed = Math.floor(finishedAt(job) / 1000)
  const expires = stage === "expired" ? completed : completed + daySeconds
  const [code, message] = failures[stage] ?? []
  // The length as asked until there is a film to tell it of.
  const seconds = isDone ? secondsOf(job) : job.ask.seconds
  return {
    id: job.id,
    object: "video",
    model,
    status: word,
    progress: isDone ? 100 : Math.floor(100 * progressOf(job)),
    created_at: Math.floor(job.createdAt / 1000),
    completed_at: isDone ? completed : null,
    expires_at: isDone ? expires : null,
    ...(isDone && job.plan.reports === false ? {} : { seconds: String(seconds) }),
    size,
    prompt: job.ask.prompt,
    error: code === undefined ? null : { code, message: job.plan.message ?? message },
    remixed_from_video_id: null,
  }
}

function contentReply(request: VendorRequest): Reply {
  const job = jobOf(request)
  if (job === undefined) return notFound(request)
  const lives = job.plan.resultLivesMs ?? Number.POSITIVE_INFINITY
  if (stageOf(job) !== "success" || Date.now() >= finishedAt(job) + lives) {
    return errorReply(404, { message: "Video is not ready yet, or no longer there.", code: "video_not_ready" })
  }
  const { redirects, redirectTo } = job.plan.file ?? {}
  if (redirects !== undefined || redirectTo !== undefined) return redirect(resultUrl(request, job))
  const variant = queryOf(request).get("variant") ?? "video"
  return variant === "video" ? filmReply(request, job) : wholeReply(200, picture(1), [["content-type", "image/png"]])
}

/** Only what is over can be deleted. */
function deleteReply(request: VendorRequest): Reply {
  const job = jobOf(request)
  if (job === undefined) return notFound(request)
  if (!isOver(stageOf(job)))
    return errorReply(409, { message: "The video is still being made.", code: "video_in_progress" })
  forgetVideo(request, job)
  return jsonReply(200, { id: job.id, object: "video.deleted", deleted: true })
}
