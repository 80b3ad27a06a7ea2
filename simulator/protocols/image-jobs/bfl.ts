import { isObject } from "../../../src/core/json.ts"
import type { ImageJob } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { valuesOf } from "../../wire/request-parser.ts"
import { headDelay } from "../event-stream.ts"
import { readJson } from "../json-body.ts"
import { homeOf } from "../links.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { beginJob, isOver, pollFault, pollJob, type Stage, type Step, stepFor, wordFor } from "./job.ts"

/** Black Forest Labs: any model's name is a path to submit to, so its own key header tells whose the request is. */
export const bflSubmit: Protocol = {
  method: "POST",
  ending: /^(?:\/v\d+)?\/[\w.-]+$/,
  isFor: ({ vendor, headers }) => /^bfl(?![a-z])/.test(vendor) || valuesOf(headers, "x-key").length > 0,
  answer: (request, step) => submitReply(request, stepFor(step)),
  refuse: bflError,
}

export const bflPoll: Protocol = {
  method: "GET",
  ending: "/get_result",
  answer: pollReply,
  refuse: bflError,
  instead: (request) => pollFault(request, taskId(request)),
}

const words: Readonly<Record<Stage, string>> = {
  queued: "Pending",
  running: "Pending",
  succeeded: "Ready",
  partial: "Ready",
  failed: "Error",
  moderated: "Content Moderated",
  expired: "Task not found",
  cancelled: "Error",
}

const usual: Readonly<Record<number, string>> = {
  401: "Not authenticated - Invalid Authentication",
  402: "Insufficient credits. Please add more credits to your account.",
  403: "Not authenticated",
  429: "Too many requests - you have exceeded the limit of active tasks.",
  500: "Internal server error",
  503: "Service unavailable",
}

function bflError(status: number, message?: string): Reply {
  if (status === 422) {
    const detail = [{ type: "missing", loc: ["body", "prompt"], msg: message ?? "Field required", input: {} }]
    return jsonReply(status, { detail })
  }
  return jsonReply(status, { detail: message ?? usual[status] ?? `Status ${status}` })
}

function taskId(request: VendorRequest): string {
  return new URLSearchParams(request.path.split("?")[1]).get("id") ?? ""
}

function submitReply(request: VendorRequest, step: Step): Reply {
  const body = readJson(request.body)
  if (!isObject(body) || typeof body.prompt !== "string") return bflError(422)
  const { id } = beginJob(request, Bun.randomUUIDv7(), { prompt: body.prompt, images: 1, asked: body }, step)
  const base = pathOf(request).replace(/\/[^/]+$/, "")
  const polling_url = `${homeOf(request, step.pollHost)}${base}/get_result?id=${id}`
  const answer = { id, polling_url, cost: 4, input_mp: 0, output_mp: 1 }
  return { ...jsonReply(200, answer), ...headDelay(step.headDelayMs ?? 0) }
}

function pollReply(request: VendorRequest): Reply {
  const id = taskId(request)
  const job = request.memory.jobs.get(id)
  const empty = { result: null, progress: null, details: null, preview: null }
  if (job === undefined) return jsonReply(200, { id, status: words.expired, ...empty })
  const stage = pollJob(job)
  return jsonReply(200, { id, status: wordFor(job, stage, words), ...empty, ...outcomeOf(job, stage) })
}

function outcomeOf(job: ImageJob, stage: Stage): object {
  if (!isOver(stage)) return { progress: job.polls === 1 ? 0 : 0.5 }
  if (stage === "moderated")
    return { details: { "Moderation Reasons": [job.plan.message ?? "Derivative Works Filter"] } }
  if (stage !== "succeeded" && stage !== "partial")
    return { details: { error: job.plan.message ?? "generation failed" } }
  const [sample] = job.results
  const [start_time, end_time] = [job.createdAt.getTime() / 1000, Date.now() / 1000]
  const { prompt, asked } = job.ask
  return { result: { sample, prompt, seed: asked.seed ?? 42, start_time, end_time, duration: end_time - start_time } }
}
