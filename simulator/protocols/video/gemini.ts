import type { Behaviour } from "../../behaviour.ts"
import type { VideoJob } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { valuesOf } from "../../wire/request-parser.ts"
import { randomOf } from "../ids.ts"
import { homeOf } from "../links.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { redirect, resultUrl } from "./cdn.ts"
import { readVeoAsk } from "./gemini-ask.ts"
import { googleError } from "./gemini-errors.ts"
import { findVideo, isOver, pollVideo, type Stage, submitVideo, type Vocabulary, videoFault } from "./job.ts"

const operation = /\/models\/([\w.-]+)\/operations\/(\w+)$/
const download = /\/files\/(\w+):download$/

const door = {
  credential: ({ headers }: VendorRequest) => valuesOf(headers, "x-goog-api-key")[0],
  refuse: googleError,
} as const

/** Veo on the Gemini API: a long-running operation, whose film is behind the key and one redirect. */
export const gemini: readonly Protocol[] = [
  { ...door, method: "POST", ending: /\/models\/[\w.-]+:predictLongRunning$/, answer: submitReply },
  {
    ...door,
    method: "GET",
    ending: operation,
    answer: pollReply,
    instead: (request) => videoFault(request, operationId(request)),
  },
  { ...door, method: "GET", ending: download, answer: downloadReply },
]

/** There are no words on this wire, only `done`. */
const words: Vocabulary = {
  queued: "queued",
  running: "running",
  success: "done",
  no_url: "done",
  failure: "error",
  moderated: "filtered",
  cancelled: "cancelled",
  expired: "expired",
  odd_status: "odd",
}

function operationId(request: VendorRequest): string {
  return operation.exec(pathOf(request))?.[2] ?? ""
}

function submitReply(request: VendorRequest, step: Behaviour): Reply {
  const ask = readVeoAsk(request)
  if ("refusal" in ask) return ask.refusal
  const makeId = (): string => randomOf("abcdefghijklmnopqrstuvwxyz0123456789", 12)
  return submitVideo(request, step, { speaker: "gemini", makeId, ask }, (job) => jsonReply(200, { name: nameOf(job) }))
}

function nameOf({ id, ask }: VideoJob): string {
  return `models/${ask.asked.model}/operations/${id}`
}

function pollReply(request: VendorRequest): Reply {
  const job = findVideo(request, "gemini", operationId(request))
  const isRight = job !== undefined && pathOf(request).endsWith(nameOf(job))
  const stage = isRight ? pollVideo(job, words).stage : "expired"
  if (!isRight || stage === "expired") return googleError(404, "Requested entity was not found.")
  const name = nameOf(job)
  return jsonReply(200, isOver(stage) ? { name, done: true, ...endingOf(request, job, stage) } : { name })
}

function endingOf(request: VendorRequest, job: VideoJob, stage: Stage): object {
  const { message } = job.plan
  switch (stage) {
    case "failure":
      return { error: { code: 13, message: message ?? "Internal error" } }
    case "cancelled":
      return { error: { code: 1, message: message ?? "The operation was cancelled." } }
    case "moderated":
      return responseOf({
        raiMediaFilteredCount: 1,
        raiMediaFilteredReasons: [message ?? "We encountered an issue with the audio for your prompt."],
      })
    case "odd_status":
      return {}
    default:
      return responseOf({ generatedSamples: [{ video: stage === "no_url" ? {} : { uri: uriOf(request, job) } }] })
  }
}

function responseOf(generateVideoResponse: object): object {
  const type = "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse"
  return { response: { "@type": type, generateVideoResponse } }
}

/** Below the same version of the API as the poll, on the same host unless told otherwise. */
function uriOf(request: VendorRequest, job: VideoJob): string {
  const version = pathOf(request).replace(/\/models\/.*$/, "")
  return `${homeOf(request, job.plan.file?.host)}${version}/files/${job.file}:download?alt=media`
}

function downloadReply(request: VendorRequest): Reply {
  const job = request.memory.videoFiles.get(download.exec(pathOf(request))?.[1] ?? "")
  if (job === undefined) {
    return googleError(403, "You do not have permission to access the File or it may not exist.")
  }
  return redirect(resultUrl(request, job))
}
