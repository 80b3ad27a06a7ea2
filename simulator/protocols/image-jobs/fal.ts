import { isObject } from "../../../src/core/json.ts"
import type { ImageJob } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { valuesOf } from "../../wire/request-parser.ts"
import { headDelay } from "../event-stream.ts"
import { readJson } from "../json-body.ts"
import { homeOf } from "../links.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { falError, falRefusal } from "./fal-errors.ts"
import { falResultBody } from "./fal-result.ts"
import { beginJob, isOver, pollFault, pollJob, type Stage, type Step, stageOf, stepFor, wordFor } from "./job.ts"

/** fal's queue: any app's name is a path to submit to, so its own scheme of authorization tells whose the request is. */
export const falSubmit: Protocol = {
  method: "POST",
  ending: /^(?:\/v\d+)?\/(?!v\d+\/)[\w.-]+\/[\w.-]+(?:\/[\w./-]+)?$/,
  isFor: ({ vendor, headers }) =>
    /^fal(?![a-z])/.test(vendor) || valuesOf(headers, "authorization").some((value) => value.startsWith("Key ")),
  answer: (request, step) => submitReply(request, stepFor(step)),
  refuse: falRefusal,
}

export const falStatus: Protocol = {
  method: "GET",
  ending: /\/requests\/[\w-]+\/status$/,
  answer: statusReply,
  refuse: falRefusal,
  instead: (request) => pollFault(request, requestId(request)),
}

export const falResult: Protocol = {
  method: "GET",
  ending: /\/requests\/[\w-]+$/,
  answer: resultReply,
  refuse: falRefusal,
}

export const falCancel: Protocol = {
  method: "PUT",
  ending: /\/requests\/[\w-]+\/cancel$/,
  answer: cancelReply,
  refuse: falRefusal,
}

/** There is no word for failure: a job that is over is completed, and its result tells. */
const words: Readonly<Record<Stage, string>> = {
  queued: "IN_QUEUE",
  running: "IN_PROGRESS",
  succeeded: "COMPLETED",
  partial: "COMPLETED",
  failed: "COMPLETED",
  moderated: "COMPLETED",
  expired: "COMPLETED",
  cancelled: "COMPLETED",
}

function requestId(request: VendorRequest): string {
  return /\/requests\/([\w-]+)/.exec(pathOf(request))?.[1] ?? ""
}

function jobOf(request: VendorRequest): ImageJob | undefined {
  return request.memory.jobs.get(requestId(request))
}

function submitReply(request: VendorRequest, step: Step): Reply {
  const body = readJson(request.body)
  if (!isObject(body) || typeof body.prompt !== "string") return falRefusal(422)
  const images = typeof body.num_images === "number" ? body.num_images : 1
  const plan: Step = body.sync_mode === true ? { ...step, results: "data" } : step
  // Its own addresses have owner and app only, whatever the app's path.
  const app = /^(?:\/v\d+)?\/(?!v\d+\/)[\w.-]+\/[\w.-]+/.exec(pathOf(request))?.[0] ?? ""
  const links = linksTo(`${homeOf(request, step.pollHost)}${app}`)
  const id = Bun.randomUUIDv7()
  const job = beginJob(request, id, { prompt: body.prompt, images, asked: { ...body, links: links(id) } }, plan)
  const reply = jsonReply(200, { status: step.waitingWord ?? "IN_QUEUE", ...factsOf(job), queue_position: 0 })
  return { ...reply, ...headDelay(step.headDelayMs ?? 0) }
}

function linksTo(app: string): (id: string) => object {
  return (id) => {
    const self = `${app}/requests/${id}`
    return { response_url: self, status_url: `${self}/status`, cancel_url: `${self}/cancel` }
  }
}

function factsOf({ id, ask }: ImageJob): object {
  return { request_id: id, ...(isObject(ask.asked.links) ? ask.asked.links : {}) }
}

/** The state is told by the status code as well: 202 until the job is over. */
function statusReply(request: VendorRequest): Reply {
  const job = jobOf(request)
  const stage = job === undefined ? "expired" : pollJob(job)
  if (job === undefined || stage === "expired") return falError(404, "Request not found", "not_found")
  const state = { status: wordFor(job, stage, words), ...factsOf(job), logs: null }
  if (stage === "queued") return jsonReply(202, { ...state, queue_position: 1 })
  return isOver(stage) ? jsonReply(200, { ...state, metrics: { inference_time: 0.5 } }) : jsonReply(202, state)
}

function resultReply(request: VendorRequest): Reply {
  const job = jobOf(request)
  if (job === undefined) return falError(404, "Request not found", "not_found")
  const stage = stageOf(job)
  switch (stage) {
    case "queued":
    case "running":
      return falError(400, "Request is still in progress", "bad_request")
    case "expired":
      return falError(404, "Request not found", "not_found")
    case "failed":
      return falError(500, job.plan.message ?? "Internal Server Error", "internal_error")
    case "cancelled":
      return falError(499, "Request was cancelled by the client", "client_cancelled")
    case "moderated":
      return falRefusal(422, job.plan.message, "content_policy_violation")
    default:
      return jsonReply(200, falResultBody(job))
  }
}

function cancelReply(request: VendorRequest): Reply {
  const job = jobOf(request)
  if (job === undefined) return jsonReply(404, { status: "NOT_FOUND" })
  if (isOver(stageOf(job))) return jsonReply(400, { status: "ALREADY_COMPLETED" })
  job.cancelled = true
  return jsonReply(202, { status: "CANCELLATION_REQUESTED" })
}
