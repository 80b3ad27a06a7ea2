import { isObject } from "../../../src/core/json.ts"
import type { ImageJob } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { type HeaderPair, valuesOf } from "../../wire/request-parser.ts"
import { headDelay } from "../event-stream.ts"
import { plainId } from "../ids.ts"
import { readJson } from "../json-body.ts"
import { homeOf } from "../links.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { beginJob, isOver, pollFault, pollJob, type Stage, type Step, stageOf, stepFor, wordFor } from "./job.ts"

const longestWaitSeconds = 60

/** Replicate predictions, of a named model or of a version. */
export const replicateCreate: Protocol = {
  method: "POST",
  ending: /(?:\/models\/[^/]+\/[^/]+|^(?:\/v\d+)?)\/predictions$/,
  answer: (request, step) => createReply(request, stepFor(step)),
  refuse: replicateError,
}

export const replicateGet: Protocol = {
  method: "GET",
  ending: /\/predictions\/\w+$/,
  answer: (request) => {
    const job = jobOf(request)
    return job === undefined ? replicateError(404) : jsonReply(200, predictionBody(request, job, pollJob(job)))
  },
  refuse: replicateError,
  instead: (request) => pollFault(request, predictionId(request)),
}

export const replicateCancel: Protocol = {
  method: "POST",
  ending: /\/predictions\/\w+\/cancel$/,
  answer: cancelReply,
  refuse: replicateError,
}

const words: Readonly<Record<Stage, string>> = {
  queued: "starting",
  running: "processing",
  succeeded: "succeeded",
  partial: "succeeded",
  failed: "failed",
  moderated: "failed",
  expired: "succeeded",
  cancelled: "canceled",
}

/** What Replicate says with each status: title, detail. */
const usual: Readonly<Record<number, readonly [title: string, detail: string]>> = {
  401: ["Unauthenticated", "You did not pass a valid authentication token"],
  402: ["Insufficient credit", "You have insufficient credit to run this model."],
  404: ["Not found", "The requested resource could not be found."],
  422: ["Input validation failed", "- input: prompt is required\n"],
  429: ["Too many requests", "Request was throttled. Your rate limit resets in ~30s."],
}

export function replicateError(status: number, message?: string): Reply {
  const [title, detail] = usual[status] ?? [`Status ${status}`, "There was an error with your request."]
  return jsonReply(status, { title, detail: message ?? detail, status })
}

function predictionId(request: VendorRequest): string {
  return /\/predictions\/(\w+)/.exec(pathOf(request))?.[1] ?? ""
}

function jobOf(request: VendorRequest): ImageJob | undefined {
  return request.memory.jobs.get(predictionId(request))
}

function createReply(request: VendorRequest, step: Step): Reply {
  const body = readJson(request.body)
  const input = isObject(body) && isObject(body.input) ? body.input : {}
  if (typeof input.prompt !== "string") return replicateError(422)
  const [, owner, name] = /\/models\/([^/]+)\/([^/]+)\/predictions$/.exec(pathOf(request)) ?? []
  const model = owner === undefined ? "simulated/version" : `${owner}/${name}`
  const images = typeof input.num_outputs === "number" ? input.num_outputs : 1
  const job = beginJob(request, plainId(), { prompt: input.prompt, images, asked: { input, model } }, step)
  const waitMs = preferredWaitMs(request.headers)
  const heldMs = waitMs === null ? 0 : hold(job, waitMs)
  const status = waitMs !== null && !job.finished ? 202 : 201
  const reply = jsonReply(status, predictionBody(request, job, stageOf(job)))
  return { ...reply, ...headDelay(heldMs + (step.headDelayMs ?? 0)) }
}

/** How long `Prefer: wait=N` asks the answer to be held, or null where it does not. */
function preferredWaitMs(headers: readonly HeaderPair[]): number | null {
  const [, seconds = longestWaitSeconds] = /^wait(?:=(\d+))?$/.exec(valuesOf(headers, "prefer")[0] ?? "") ?? [
    null,
    null,
  ]
  return seconds === null ? null : 1000 * Math.min(Number(seconds), longestWaitSeconds)
}

/** Holds a job's answer until it is done or the wait is over. A job that is planned by polls is not waited for. */
function hold(job: ImageJob, waitMs: number): number {
  const { outcome, waitMs: neededMs = 0, waitPolls = 0 } = job.plan
  if (waitPolls > 0) return 0
  if (outcome === "stuck") return waitMs
  job.finished = neededMs <= waitMs
  return Math.min(neededMs, waitMs)
}

function predictionBody(request: VendorRequest, job: ImageJob, stage: Stage): object {
  const prefix = pathOf(request).replace(/\/(?:models|predictions)\/?.*$/, "")
  const self = `${homeOf(request, job.plan.pollHost)}${prefix}/predictions/${job.id}`
  const [created, now] = [job.createdAt.toISOString(), new Date().toISOString()]
  return {
    id: job.id,
    model: job.ask.asked.model,
    version: "hidden",
    input: job.ask.asked.input,
    logs: "",
    output: outputOf(job, stage),
    data_removed: stage === "expired",
    error: errorOf(job, stage),
    status: wordFor(job, stage, words),
    created_at: created,
    started_at: stage === "queued" ? null : created,
    completed_at: isOver(stage) ? now : null,
    ...(isOver(stage) ? { metrics: { predict_time: 0.5, total_time: 0.6 } } : {}),
    urls: { get: self, cancel: `${self}/cancel` },
  }
}

function outputOf({ plan, results }: ImageJob, stage: Stage): readonly string[] | string | null {
  if (stage !== "succeeded" && stage !== "partial") return null
  return plan.shape === "single" ? (results[0] ?? null) : results
}

function errorOf({ plan }: ImageJob, stage: Stage): string | null {
  if (stage === "failed") return plan.message ?? "Prediction failed."
  if (stage !== "moderated") return null
  return plan.message ?? "The input or output was flagged as sensitive. Please try again with different inputs. (E005)"
}

function cancelReply(request: VendorRequest): Reply {
  const job = jobOf(request)
  if (job === undefined) return replicateError(404)
  if (!isOver(stageOf(job))) job.cancelled = true
  return jsonReply(200, predictionBody(request, job, stageOf(job)))
}
