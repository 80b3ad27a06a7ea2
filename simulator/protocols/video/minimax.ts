import type { Behaviour } from "../../behaviour.ts"
import type { VideoJob } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { valuesOf } from "../../wire/request-parser.ts"
import { digitsId } from "../ids.ts"
import type { Protocol, VendorRequest } from "../protocol.ts"
import { resultBytes, resultUrl } from "./cdn.ts"
import { type Body, bearer, bodyOf, isNoneOr, isPictureUrl, isText, queryOf } from "./fields.ts"
import {
  findVideo,
  finishedAt,
  type Look,
  pollVideo,
  type Stage,
  submitVideo,
  type Vocabulary,
  videoFault,
} from "./job.ts"
import { baseResponse, minimaxError, minimaxRefusal } from "./minimax-errors.ts"

const usualSeconds = 6
const longestPrompt = 2000
const door = {
  credential: bearer,
  unauthorized: ({ headers }: VendorRequest) =>
    minimaxError(valuesOf(headers, "authorization").length === 0 ? 1004 : 2049),
  refuse: minimaxRefusal,
} as const

/** MiniMax Hailuo, first version: every answer has status 200, and the film is a file to ask for in a third call. */
export const minimax: readonly Protocol[] = [
  { ...door, method: "POST", ending: "/v1/video_generation", answer: submitReply },
  {
    ...door,
    method: "GET",
    ending: "/v1/query/video_generation",
    answer: pollReply,
    instead: (request) => videoFault(request, queryOf(request).get("task_id") ?? ""),
  },
  { ...door, method: "GET", ending: "/v1/files/retrieve", answer: retrieveReply },
]

const words: Vocabulary = {
  queued: "Queueing",
  running: "Processing",
  success: "Success",
  no_url: "Success",
  failure: "Fail",
  moderated: "Fail",
  cancelled: "Fail",
  expired: "Fail",
  odd_status: "Paused",
}

const failures: Readonly<Partial<Record<Stage, number>>> = {
  failure: 1000,
  moderated: 1027,
  cancelled: 1000,
  expired: 1001,
}

function submitReply(request: VendorRequest, step: Behaviour): Reply {
  const body = bodyOf(request)
  const problem = body === null ? "body" : problemOf(body)
  if (body === null || problem !== null) return minimaxError(2013, `invalid params, ${problem}`)
  const { model, prompt, duration = usualSeconds, resolution } = body
  const ask = { prompt: String(prompt ?? ""), seconds: Number(duration), asked: { model, resolution } }
  const asked = { speaker: "minimax", makeId: () => digitsId(15), file: digitsId(15), ask }
  return submitVideo(request, step, asked, ({ id }) => jsonReply(200, { task_id: id, ...baseResponse(0) }))
}

function problemOf(body: Body): string | null {
  const { model, prompt, duration, resolution, first_frame_image, last_frame_image } = body
  if (!isText(model) || !/^(?:MiniMax-Hailuo-|[TIS]2V-01)/.test(model)) return `model ${model} does not exist`
  const needsPicture = /^(?:I2V-|MiniMax-Hailuo-2\.3-Fast)/.test(model)
  if (needsPicture && first_frame_image === undefined) return "first_frame_image is required"
  for (const picture of [first_frame_image, last_frame_image]) {
    if (picture !== undefined && !isPictureUrl(picture)) return "image is not an address or a data URL"
  }
  if (prompt === undefined ? !needsPicture : !isText(prompt, longestPrompt)) return "prompt is missing or too long"
  if (/-01/.test(model)) {
    return isNoneOr(duration, [6]) && isNoneOr(resolution, ["720P"]) ? null : "duration or resolution is not supported"
  }
  if (!isNoneOr(duration, [6, 10])) return `duration ${JSON.stringify(duration)} is not supported`
  const small = model === "MiniMax-Hailuo-02" && first_frame_image !== undefined ? ["512P"] : []
  if (!isNoneOr(resolution, [...small, "768P", "1080P"])) return `resolution ${resolution} is not supported`
  return resolution === "1080P" && duration === 10 ? "1080P does not support a duration of 10" : null
}

function pollReply(request: VendorRequest): Reply {
  const job = findVideo(request, "minimax", queryOf(request).get("task_id") ?? "")
  if (job === undefined) return minimaxError(2013, "invalid params, task_id does not exist")
  const { stage, word } = preparing(job, pollVideo(job, words))
  const code = failures[stage]
  if (code !== undefined) {
    return jsonReply(200, { task_id: job.id, status: word, file_id: "", ...baseResponse(code, job.plan.message) })
  }
  const isDone = stage === "success" || stage === "no_url"
  const [video_width, video_height] = job.ask.asked.resolution === "1080P" ? [1920, 1080] : [1366, 768]
  return jsonReply(200, {
    task_id: job.id,
    status: word,
    file_id: isDone ? job.file : "",
    ...(isDone ? { video_width, video_height } : {}),
    ...baseResponse(0),
  })
}

/** The first poll of a waiting task usually finds it not even queued. */
function preparing(job: VideoJob, look: Look): Look {
  return job.polls === 1 && look.word === words.queued ? { ...look, word: "Preparing" } : look
}

/** A new address each time. */
function retrieveReply(request: VendorRequest): Reply {
  const fileId = queryOf(request).get("file_id") ?? ""
  const job = request.memory.videoFiles.get(fileId)
  if (job === undefined) return jsonReply(200, baseResponse(2013, "invalid params, file not found"))
  const { outcome = "success" } = job.plan
  const file = {
    // A 64-bit number on this wire, though the poll has it as text.
    file_id: Number(fileId),
    bytes: resultBytes(job),
    created_at: Math.floor(finishedAt(job) / 1000),
    filename: "output_aigc.mp4",
    purpose: "video_generation",
    download_url: outcome === "success" ? resultUrl(request, job, true) : "",
  }
  return jsonReply(200, { file, ...baseResponse(0) })
}
