import { isObject } from "../../../src/core/json.ts"
import type { JobAsk } from "../../memory.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { valuesOf } from "../../wire/request-parser.ts"
import { headDelay } from "../event-stream.ts"
import { readJson } from "../json-body.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { dashscopeError } from "./dashscope-errors.ts"
import { taskBody, usageOf, withMessages } from "./dashscope-task.ts"
import { beginJob, pollFault, pollJob, type Step, stageOf, stepFor } from "./job.ts"

/** Alibaba DashScope images: a task is submitted, then asked for. */
export const dashscopeSubmit: Protocol = {
  method: "POST",
  ending: /\/services\/aigc\/(?:(?:text2image|image2image)\/image-synthesis|image-generation\/generation)$/,
  answer: (request, step) => submitReply(request, stepFor(step)),
  refuse: dashscopeError,
}

/** The newer models can also be waited for. */
export const dashscopeSync: Protocol = {
  method: "POST",
  ending: "/services/aigc/multimodal-generation/generation",
  answer: (request, step) => syncReply(request, stepFor(step)),
  refuse: dashscopeError,
}

export const dashscopePoll: Protocol = {
  method: "GET",
  ending: /\/api\/v1\/tasks\/[\w-]+$/,
  answer: pollReply,
  refuse: dashscopeError,
  instead: (request) => pollFault(request, taskId(request)),
}

export const dashscopeCancel: Protocol = {
  method: "POST",
  ending: /\/api\/v1\/tasks\/[\w-]+\/cancel$/,
  answer: cancelReply,
  refuse: dashscopeError,
}

function taskId(request: VendorRequest): string {
  return /\/tasks\/([\w-]+)/.exec(pathOf(request))?.[1] ?? ""
}

function submitReply(request: VendorRequest, step: Step): Reply {
  if (valuesOf(request.headers, "x-dashscope-async")[0] !== "enable") {
    return dashscopeError(403, "current user api does not support synchronous calls.")
  }
  const ask = readAsk(request)
  if (ask === null)
    return dashscopeError(400, "Required parameter(s) missing or invalid, please check the request parameters.")
  const { id } = beginJob(request, Bun.randomUUIDv7(), ask, step)
  const answer = { output: { task_id: id, task_status: step.waitingWord ?? "PENDING" }, request_id: Bun.randomUUIDv7() }
  return { ...jsonReply(200, answer), ...headDelay(step.headDelayMs ?? 0) }
}

/** The outcome at once; what would have failed as a task is an error of the call here. */
function syncReply(request: VendorRequest, step: Step): Reply {
  const ask = readAsk(request)
  if (ask === null) return dashscopeError(400)
  const { outcome = "succeeded", message } = step
  if (outcome === "moderated") return dashscopeError(400, message, "DataInspectionFailed")
  if (outcome !== "succeeded" && outcome !== "partial") return dashscopeError(500, message)
  const job = beginJob(request, Bun.randomUUIDv7(), { ...ask, asked: { messages: true } }, step)
  const answer = { output: withMessages(job), usage: usageOf(job), request_id: Bun.randomUUIDv7() }
  return { ...jsonReply(200, answer), ...headDelay((step.headDelayMs ?? 0) + (step.waitMs ?? 0)) }
}

/** The prompt stands alone in the older models' requests and in a message in the newer ones'. */
function readAsk(request: VendorRequest): JobAsk | null {
  const body = readJson(request.body)
  if (!isObject(body) || typeof body.model !== "string" || !isObject(body.input)) return null
  const messages = body.input.messages
  const prompt = messages === undefined ? body.input.prompt : JSON.stringify(messages)
  const count = isObject(body.parameters) ? (body.parameters.n ?? 1) : 1
  if (typeof prompt !== "string" || typeof count !== "number") return null
  return { prompt, images: count, asked: { messages: messages !== undefined } }
}

function pollReply(request: VendorRequest): Reply {
  const id = taskId(request)
  const job = request.memory.jobs.get(id)
  const request_id = Bun.randomUUIDv7()
  // The vendor does not tell a task that never was from one that has expired.
  if (job === undefined) return jsonReply(200, { request_id, output: { task_id: id, task_status: "UNKNOWN" } })
  return jsonReply(200, { request_id, ...taskBody(job, pollJob(job)) })
}

function cancelReply(request: VendorRequest): Reply {
  const job = request.memory.jobs.get(taskId(request))
  if (job === undefined || stageOf(job) !== "queued") {
    const words = "Failed to cancel the task, please confirm if the task is in PENDING status."
    return dashscopeError(400, words, "UnsupportedOperation")
  }
  job.cancelled = true
  return jsonReply(200, { request_id: Bun.randomUUIDv7() })
}
