import type { ImageAsk, ImageProgress, ImageVendor } from "../../core/image-vendor.ts"
import type { JsonObject, JsonValue } from "../../core/json.ts"
import type { VendorCall } from "../../core/vendor-job.ts"
import { at, errorText, isOk, listOf, reasonText, refText, textAt, unreadable } from "../reply.ts"
import { anySize, fitSize, type SizeRule } from "../size-rule.ts"
import { finished } from "./picture.ts"
import { checkCount, vendorFields } from "./vendor-fields.ts"

const services = "/api/v1/services/aigc"
const tasks = "/api/v1/tasks"

/** How a generation of models is asked: the older ones take a prompt, the newer ones a conversation; some only answer at once. */
type Manner = "prompt" | "messages" | "messages-at-once"

const paths: Readonly<Record<Manner, string>> = {
  prompt: `${services}/text2image/image-synthesis`,
  messages: `${services}/image-generation/generation`,
  "messages-at-once": `${services}/multimodal-generation/generation`,
}

interface ModelRow {
  readonly models: RegExp
  readonly manner: Manner
  readonly sizes: SizeRule
  readonly most: number | null
}

const qwenSizes: SizeRule = { kind: "list", sizes: ["1664x928", "1472x1104", "1328x1328", "1104x1472", "928x1664"] }
const upTo2k: SizeRule = { kind: "pixels", squares: [512, 2048] }
const wanArea: SizeRule = { kind: "pixels", squares: [1280, 1440], steepest: 4 }

// The first row that fits a model's name counts.
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { models: /^wan(x|2\.[0-2]-)/, manner: "prompt", sizes: { kind: "pixels", sides: [512, 1440] }, most: 4 },
  { models: /^wan2\.5-/, manner: "prompt", sizes: wanArea, most: 4 },
  { models: /^wan2\.6-/, manner: "messages", sizes: wanArea, most: 4 },
  { models: /^wan2\.7-image-pro/, manner: "messages", sizes: { kind: "pixels", squares: [768, 4096], steepest: 8 }, most: 4 },
  { models: /^wan/, manner: "messages", sizes: { kind: "pixels", squares: [768, 2048], steepest: 8 }, most: 4 },
  { models: /^qwen-image(-plus)?(-\d{4}-\d\d-\d\d)?$/, manner: "prompt", sizes: qwenSizes, most: 1 },
  { models: /^qwen-image-max/, manner: "messages-at-once", sizes: qwenSizes, most: 1 },
  { models: /^qwen-image/, manner: "messages-at-once", sizes: upTo2k, most: 6 },
  { models: /^z-image/, manner: "messages-at-once", sizes: upTo2k, most: 1 },
  { models: /^/, manner: "prompt", sizes: anySize, most: null },
]

const statuses: ReadonlyMap<string, "waiting" | "succeeded" | "failed" | "unknown"> = new Map([
  ["PENDING", "waiting"],
  ["PRE-PROCESSING", "waiting"],
  ["RUNNING", "waiting"],
  ["POST-PROCESSING", "waiting"],
  ["SUSPENDED", "waiting"],
  ["SUCCEEDED", "succeeded"],
  ["FAILED", "failed"],
  ["CANCELED", "failed"],
  ["UNKNOWN", "unknown"],
])

/** Alibaba's Qwen and Wan images. Keys, models and hosts belong to one region, so no other host is ever called. */
export const dashscope: ImageVendor = {
  vendor: "dashscope",
  hosts: [],

  submit(ask, { baseUrl, upstreamModel }) {
    const row = models.find((candidate) => candidate.models.test(upstreamModel))!
    checkCount(ask.count, row.most)
    return {
      method: "POST",
      url: baseUrl + paths[row.manner],
      // Without it the asynchronous services refuse the call; the others would not know what it asks for.
      ...(row.manner === "messages-at-once" ? {} : { headers: { "x-dashscope-async": "enable" } }),
      body: { model: upstreamModel, ...inputOf(ask, row.manner, parametersOf(ask, row)) },
    }
  },

  readSubmit(reply) {
    const task = textAt(reply.json, "output", "task_id")
    const status = statuses.get(textAt(reply.json, "output", "task_status") ?? "")
    if (status === "failed") return { kind: "failed", reason: failure(at(reply.json, "output")) }
    if (task !== null) return { kind: "accepted", ref: { task } }
    if (textAt(reply.json, "code") !== null) return { kind: "failed", reason: failure(reply.json) }
    return at(reply.json, "output", "choices") === undefined ? unreadable(reply) : verdict(at(reply.json, "output"))
  },

  poll(ref, { baseUrl }) {
    return { method: "GET", url: taskUrl(baseUrl, ref) }
  },

  readPoll(reply) {
    const output = at(reply.json, "output")
    const word = textAt(output, "task_status")
    if (!isOk(reply) || word === null) return unreadable(reply)
    switch (statuses.get(word)) {
      case "succeeded":
        return verdict(output)
      case "failed":
        return { kind: "failed", reason: failure(output) }
      case "unknown":
        // Said of tasks that have expired, but also of those that have not got around yet.
        return { kind: "unreadable", why: "DashScope does not know the task: it has expired or is another region's" }
      default:
        return { kind: "waiting" }
    }
  },

  cancel(ref, { baseUrl }): VendorCall {
    return { method: "POST", url: `${taskUrl(baseUrl, ref)}/cancel` }
  },
}

/** `n` is said even where it is one: some of these models make four unless told otherwise. */
function parametersOf(ask: ImageAsk, row: ModelRow): JsonObject {
  if (ask.size !== null) fitSize(ask.size, row.sizes)
  return {
    ...vendorFields(ask.extra),
    ...(row.most === 1 ? {} : { n: ask.count }),
    ...(ask.size === null ? {} : { size: `${ask.size.width}*${ask.size.height}` }),
  }
}

/** The prompt, and with the older models what should not be seen, stand apart from the parameters. */
function inputOf(ask: ImageAsk, manner: Manner, parameters: JsonObject): JsonObject {
  if (manner !== "prompt") {
    return { input: { messages: [{ role: "user", content: [{ text: ask.prompt }] }] }, parameters }
  }
  const { negative_prompt, ...others } = parameters
  return {
    input: { ...(negative_prompt === undefined ? {} : { negative_prompt }), prompt: ask.prompt },
    parameters: others,
  }
}

/** A task that succeeded may have made some of its images only; the others have an error in their place. */
function verdict(output: JsonValue | undefined): ImageProgress & { kind: "succeeded" | "failed" } {
  const results = listOf(at(output, "results"))
  const contents = listOf(at(output, "choices")).flatMap((choice) => listOf(at(choice, "message", "content")))
  const broken = results.find((result) => textAt(result, "code") !== null || textAt(result, "message") !== null)
  return finished(
    results.length > 0 ? results.map((result) => at(result, "url")) : contents.map((content) => at(content, "image")),
    broken === undefined ? undefined : failure(broken),
  )
}

function failure(error: JsonValue | undefined): string {
  const code = textAt(error, "code")
  const text = errorText(error) ?? "the job failed"
  if (code === null) return text
  const moderated = /^(DataInspectionFailed|IPInfringementSuspect)/.test(code)
  return reasonText(`${moderated ? "refused by the vendor's moderation: " : ""}${text} (${code})`)
}

function taskUrl(baseUrl: string, ref: JsonValue): string {
  return `${baseUrl}${tasks}/${encodeURIComponent(refText(ref, "task"))}`
}
