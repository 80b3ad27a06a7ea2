import type { Behaviour } from "../../behaviour.ts"
import { jsonReply, type Reply } from "../../wire/reply.ts"
import { digitsId } from "../ids.ts"
import { type Protocol, pathOf, type VendorRequest } from "../protocol.ts"
import { coverUrl, resultUrl } from "./cdn.ts"
import { type Body, bearer, bodyOf, isNamed, isNoneOr, isText } from "./fields.ts"
import { findByExternalId, findVideo, pollVideo, submitVideo, type Vocabulary, videoFault } from "./job.ts"

const usualSeconds = 5
const longestPrompt = 512
const sizes = ["1280x720", "720x1280", "1024x1024", "1920x1080", "1080x1920", "2048x1080", "3840x2160"]
const result = /\/async-result\/([\w-]+)$/
const door = { credential: bearer, refuse: zhipuError } as const

/** Zhipu's CogVideoX. */
export const zhipu: readonly Protocol[] = [
  {
    ...door,
    method: "POST",
    ending: "/videos/generations",
    isFor: (request) => isNamed(request, "zhipu") || /\/paas\/v4\//.test(pathOf(request)),
    answer: submitReply,
  },
  {
    ...door,
    method: "GET",
    ending: result,
    answer: pollReply,
    instead: (request) => videoFault(request, taskId(request)),
  },
]

const words: Vocabulary = {
  queued: "PROCESSING",
  running: "PROCESSING",
  success: "SUCCESS",
  no_url: "SUCCESS",
  failure: "FAIL",
  moderated: "FAIL",
  cancelled: "FAIL",
  expired: "FAIL",
  odd_status: "PAUSED",
}

/** What Zhipu says with each status: code, message. */
const usual: Readonly<Record<number, readonly [code: string, message: string]>> = {
  400: ["1214", "Invalid parameter."],
  401: ["1002", "Authorization Token is invalid."],
  402: ["1113", "Your account is in arrears."],
  404: ["1211", "The model does not exist."],
  429: ["1302", "The concurrency of your API use is too high."],
  503: ["1305", "The API is at its limit."],
}

function zhipuError(status: number, message?: string, code?: string): Reply {
  const [usualCode, words] = usual[status] ?? ["500", "Internal error."]
  return jsonReply(status, { error: { code: code ?? usualCode, message: message ?? words } })
}

function taskId(request: VendorRequest): string {
  return result.exec(pathOf(request))?.[1] ?? ""
}

function submitReply(request: VendorRequest, step: Behaviour): Reply {
  const body = bodyOf(request)
  if (body === null) return zhipuError(400, "The body is not JSON.")
  const { model, prompt, duration = usualSeconds, request_id = digitsId(19) } = body
  if (!isText(model) || !/^(?:cogvideox|vidu)/.test(model)) return zhipuError(404)
  const wrong = wrongField(body)
  if (wrong !== null) return zhipuError(400, `The parameter ${wrong} is not valid.`)
  const externalId = String(request_id)
  if (findByExternalId(request, "zhipu", externalId) !== undefined) {
    return zhipuError(400, "request_id has been used before.")
  }
  const asked = { model, requestId: externalId }
  const ask = {
    prompt: String(prompt ?? ""),
    seconds: Number(duration),
    ...(body.request_id === undefined ? {} : { externalId }),
    asked,
  }
  const makeId = (): string => `${digitsId(12)}-${digitsId(4)}`
  return submitVideo(request, step, { speaker: "zhipu", makeId, ask }, ({ id }) =>
    jsonReply(200, { model, id, request_id: externalId, task_status: words.queued }),
  )
}

function wrongField({ prompt, image_url, quality, size, fps, duration, model }: Body): string | null {
  if (prompt === undefined ? image_url === undefined : !isText(prompt, longestPrompt)) return "prompt"
  if (!isNoneOr(quality, ["speed", "quality"])) return "quality"
  if (!isNoneOr(size, sizes)) return "size"
  if (!isNoneOr(fps, [30, 60])) return "fps"
  const lengths = String(model).startsWith("vidu") ? [4, 5] : [5, 10]
  return isNoneOr(duration, lengths) ? null : "duration"
}

/** A task that failed does not say why. */
function pollReply(request: VendorRequest): Reply {
  const job = findVideo(request, "zhipu", taskId(request))
  if (job === undefined) return zhipuError(404, "The task does not exist.", "1214")
  const { stage, word } = pollVideo(job, words)
  const { model, requestId } = job.ask.asked
  const isDone = stage === "success" || stage === "no_url"
  const films = stage === "success" ? [{ url: resultUrl(request, job), cover_image_url: coverUrl(request, job) }] : []
  return jsonReply(200, {
    model,
    request_id: requestId,
    task_status: word,
    ...(isDone ? { video_result: films } : {}),
  })
}
