import type { ImageAsk, ImageVendor } from "../../core/image-vendor.ts"
import type { JsonObject, JsonValue } from "../../core/json.ts"
import type { Reply } from "../../core/vendor-job.ts"
import { addressAt, at, errorText, isOk, listOf, refText, textAt, unreadable } from "../reply.ts"
import { anySize, fitSize, ratios, type SizeRule } from "../size-rule.ts"
import { finished } from "./picture.ts"
import { checkCount, vendorFields } from "./vendor-fields.ts"

interface ModelRow {
  readonly models: RegExp
  readonly sizes: SizeRule
  /** How a size in pixels is written in `image_size`: as an object, or as `<width>x<height>`. */
  readonly pixelsAs: "object" | "text"
  readonly most: number | null
  readonly knows: readonly string[]
}

const usual = { sizes: anySize, pixelsAs: "object", most: null, knows: ["output_format"] } as const

const gptSizes: SizeRule = { kind: "list", sizes: ["1024x1024", "1536x1024", "1024x1536"] }

/** Most models take `image_size`, and fal judges it; these do not. The first row that fits counts. */
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { ...usual, models: /^fal-ai\/flux-(pro\/v1\.1-ultra|pro\/kontext|kontext)/, sizes: ratios("21:9 16:9 4:3 3:2 1:1 2:3 3:4 9:16 9:21"), most: 4 },
  { ...usual, models: /^fal-ai\/imagen/, sizes: ratios("1:1 16:9 9:16 3:4 4:3"), most: 4 },
  { ...usual, models: /^fal-ai\/(nano-banana|gemini)/, sizes: ratios("21:9 16:9 3:2 4:3 5:4 1:1 4:5 3:4 2:3 9:16"), most: 4 },
  { ...usual, models: /^fal-ai\/gpt-image/, sizes: gptSizes, pixelsAs: "text", most: 4, knows: ["output_format", "quality", "background", "input_fidelity"] },
  { ...usual, models: /^fal-ai\/recraft/, knows: ["style"], most: 1 },
  { ...usual, models: /^/ },
]

/** There is no word for failure: a job that is COMPLETED may have failed, and only its result tells. */
const statuses: ReadonlyMap<string, "waiting" | "completed"> = new Map([
  ["IN_QUEUE", "waiting"],
  ["IN_PROGRESS", "waiting"],
  ["COMPLETED", "completed"],
])

/** Statuses that are about the asking, not about the job. */
const aboutTheAsking: ReadonlySet<number> = new Set([401, 403, 404, 408, 425, 429])

const stillRunning = /still in progress/i

/** fal's queue. The addresses it returns are used as given: they leave out parts of the model's path. */
export const fal: ImageVendor = {
  vendor: "fal",
  hosts: ["queue.fal.run"],

  submit(ask, { baseUrl, upstreamModel }) {
    const row = models.find((candidate) => candidate.models.test(upstreamModel))!
    checkCount(ask.count, row.most)
    return {
      method: "POST",
      url: `${baseUrl}/${upstreamModel.split("/").map(encodeURIComponent).join("/")}`,
      body: {
        ...vendorFields(ask.extra, row.knows),
        prompt: ask.prompt,
        ...(ask.count === 1 ? {} : { num_images: ask.count }),
        ...(ask.size === null ? {} : sizeOf(ask.size, row)),
      },
    }
  },

  readSubmit(reply) {
    const id = textAt(reply.json, "request_id")
    const [status, result] = [addressAt(reply.json, "status_url"), addressAt(reply.json, "response_url")]
    if (id !== null || (status !== null && result !== null)) {
      const cancel = addressAt(reply.json, "cancel_url")
      return { kind: "accepted", ref: { id, status, result, cancel, stage: "status" } }
    }
    // An upstream that points to fal's synchronous address answers with the result itself.
    if (pictures(reply.json).length > 0) return finished(pictures(reply.json))
    const error = errorText(reply.json)
    return error === null ? unreadable(reply) : { kind: "failed", reason: error }
  },

  poll(ref, { baseUrl, upstreamModel }) {
    const url =
      textAt(ref, "stage") === "result"
        ? (textAt(ref, "result") ?? requestUrl(ref, baseUrl, upstreamModel))
        : (textAt(ref, "status") ?? `${requestUrl(ref, baseUrl, upstreamModel)}/status`)
    return { method: "GET", url }
  },

  readPoll(reply, ref) {
    if (textAt(ref, "stage") === "result") return readResult(reply)
    const word = textAt(reply.json, "status")
    if (!isOk(reply) || word === null) return unreadable(reply)
    if (statuses.get(word) !== "completed") return { kind: "waiting" }
    const error = textAt(reply.json, "error")
    if (error !== null) return { kind: "failed", reason: errorText(reply.json) ?? error }
    return { kind: "continue", ref: { ...(ref as JsonObject), stage: "result" } }
  },

  cancel(ref, { baseUrl, upstreamModel }) {
    return { method: "PUT", url: textAt(ref, "cancel") ?? `${requestUrl(ref, baseUrl, upstreamModel)}/cancel` }
  },
}

function sizeOf(size: NonNullable<ImageAsk["size"]>, row: ModelRow): JsonObject {
  const fitted = fitSize(size, row.sizes)
  if (fitted.kind === "ratio") return { aspect_ratio: fitted.ratio }
  const { width, height } = fitted
  return { image_size: row.pixelsAs === "object" ? { width, height } : `${width}x${height}` }
}

/** The job's error comes as the HTTP status of its result; trouble on the way has the same statuses but not the header. */
function readResult(reply: Reply) {
  if (isOk(reply)) return isEmpty(reply.json) ? unreadable(reply) : finished(pictures(reply.json))
  const error = errorText(reply.json)
  if (reply.status === 400 && error !== null && stillRunning.test(error)) return { kind: "waiting" } as const
  const jobsOwn = reply.headers["x-fal-error-type"] !== undefined || textAt(reply.json, "error_type") !== null
  const verdict = reply.status < 500 ? reply.status >= 400 && !aboutTheAsking.has(reply.status) : jobsOwn
  return verdict ? ({ kind: "failed", reason: error ?? `HTTP ${reply.status}` } as const) : unreadable(reply)
}

function isEmpty(json: JsonValue): boolean {
  return json === null || typeof json !== "object"
}

/** Most models have a list, some a single image; each is an object with an address, or the address itself. */
function pictures(json: JsonValue): readonly JsonValue[] {
  const list = listOf(at(json, "images"))
  const image = at(json, "image")
  const found = list.length === 0 && image !== undefined ? [image] : list
  return found.map((item) => at(item, "url") ?? item)
}

/** Where a job is found if its addresses were not given: below the first two parts of the model's name. */
function requestUrl(ref: JsonValue, baseUrl: string, model: string): string {
  const app = model.split("/").slice(0, 2).map(encodeURIComponent).join("/")
  return `${baseUrl}/${app}/requests/${encodeURIComponent(refText(ref, "id"))}`
}
