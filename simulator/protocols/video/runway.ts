import type { Behaviour } from "../../behaviour.ts"
import type { VideoJob } from "../../memory.ts"
import { jsonReply, type Reply, wholeReply } from "../../wire/reply.ts"
import { valuesOf } from "../../wire/request-parser.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { resultUrl } from "./cdn.ts"
import { bearer } from "./fields.ts"
import {
  findVideo,
  forgetVideo,
  isOver,
  type Look,
  pollVideo,
  progressOf,
  type Stage,
  secondsOf,
  submitVideo,
  type Vocabulary,
  videoFault,
} from "./job.ts"
import { creditsFor, readRunwayAsk } from "./runway-ask.ts"
import { runwayError } from "./runway-errors.ts"

const version = "2024-11-06"
const task = /\/tasks\/([\w-]+)$/
const door = { credential: bearer, refuse: runwayError } as const

/** Runway: every call names the version of the API. */
export const runway: readonly Protocol[] = [
  { ...door, method: "POST", ending: /\/(?:text|image)_to_video$/, answer: versioned(submitReply) },
  {
    ...door,
    method: "GET",
    ending: task,
    isFor: isRunway,
    answer: versioned(pollReply),
    instead: (request) => videoFault(request, taskId(request)),
  },
  { ...door, method: "DELETE", ending: task, isFor: isRunway, answer: versioned(deleteReply) },
]

const words: Vocabulary = {
  queued: "PENDING",
  running: "RUNNING",
  success: "SUCCEEDED",
  no_url: "SUCCEEDED",
  failure: "FAILED",
  moderated: "FAILED",
  cancelled: "CANCELLED",
  expired: "EXPIRED",
  odd_status: "PAUSED",
}

const failures: Readonly<Partial<Record<Stage, readonly [code: string, message: string]>>> = {
  failure: ["INTERNAL.BAD_OUTPUT.CODE01", "An unexpected error occurred."],
  moderated: ["SAFETY.INPUT.TEXT", "The text prompt did not pass our content moderation."],
}

type Answer = (request: VendorRequest, step: Behaviour) => Reply

function versioned(answer: Answer): Answer {
  return (request, step) => {
    const [told] = valuesOf(request.headers, "x-runway-version")
    if (told === undefined) return runwayError(400, "The X-Runway-Version header is required.")
    return told === version ? answer(request, step) : runwayError(400, `The API version ${told} is not valid.`)
  }
}

function taskId(request: VendorRequest): string {
  return task.exec(pathOf(request))?.[1] ?? ""
}

/** Other vendors have tasks as well, below longer paths. */
function isRunway(request: VendorRequest): boolean {
  return /^(?:\/v\d+)*\/tasks\//.test(pathOf(request))
}

function submitReply(request: VendorRequest, step: Behaviour): Reply {
  const ask = readRunwayAsk(request)
  if ("refusal" in ask) return ask.refusal
  const asked = { speaker: "runway", makeId: () => crypto.randomUUID(), ask }
  return submitVideo(request, step, asked, (job) => jsonReply(200, { id: job.id, ...estimateOf(job) }))
}

function estimateOf({ ask }: VideoJob): object {
  return { estimatedCost: { credits: creditsFor(ask.asked.model, ask.seconds) } }
}

function pollReply(request: VendorRequest): Reply {
  const job = findVideo(request, "runway", taskId(request))
  const look = job === undefined ? null : pollVideo(job, words)
  if (job === undefined || look === null || look.stage === "expired") return runwayError(404)
  return jsonReply(200, taskOf(request, job, look))
}

function taskOf(request: VendorRequest, job: VideoJob, { stage, word }: Look): object {
  const head = { id: job.id, status: word, createdAt: new Date(job.createdAt).toISOString() }
  if (stage === "running") return { ...head, progress: progressOf(job), ...estimateOf(job) }
  if (!isOver(stage) || stage === "odd_status") return { ...head, ...estimateOf(job) }
  const [failureCode, failure] = failures[stage] ?? []
  if (failureCode !== undefined) {
    return { ...head, failure: job.plan.message ?? failure, failureCode, cost: { credits: 0 } }
  }
  if (stage === "cancelled") return { ...head, cost: { credits: 0 } }
  const credits = creditsFor(job.ask.asked.model, secondsOf(job))
  return { ...head, output: stage === "success" ? [resultUrl(request, job, true)] : [], cost: { credits } }
}

/** Cancels or deletes; either way the task is gone afterwards. */
function deleteReply(request: VendorRequest): Reply {
  const job = findVideo(request, "runway", taskId(request))
  if (job === undefined) return runwayError(404)
  forgetVideo(request, job)
  return wholeReply(204, "", [])
}
