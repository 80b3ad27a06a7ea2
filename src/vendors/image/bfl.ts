import { GatewayError } from "../../core/errors.ts"
import type { ImageAsk, ImageVendor } from "../../core/image-vendor.ts"
import type { JsonObject, JsonValue } from "../../core/json.ts"
import { addressAt, at, errorText, isOk, listOf, reasonText, refText, textAt, unreadable } from "../reply.ts"
import { fitSize, type SizeRule } from "../size-rule.ts"
import { finished } from "./picture.ts"
import { checkCount, vendorFields } from "./vendor-fields.ts"

/** Which sizes a model makes; the first row that fits its name counts. */
// biome-ignore format: a table
const sizes: readonly { readonly models: RegExp; readonly rule: SizeRule }[] = [
  { models: /kontext/, rule: { kind: "ratio-range", tallest: "3:7", widest: "7:3" } },
  { models: /ultra/, rule: { kind: "ratio-range", tallest: "9:21", widest: "21:9" } },
  { models: /^flux-(pro|dev)/, rule: { kind: "pixels", sides: [256, 1440], multipleOf: 32 } },
  { models: /^/, rule: { kind: "pixels", sides: [64], multipleOf: 16, squares: [64, 2048] } },
]

/** The one word that comes with an error status, a 404. */
const notFound = "Task not found"

/** `Queued`, `Processing` and words that are not known yet mean waiting as well. */
const statuses: ReadonlyMap<string, "waiting" | "ready" | "moderated" | "failed"> = new Map([
  ["Pending", "waiting"],
  ["Ready", "ready"],
  ["Request Moderated", "moderated"],
  ["Content Moderated", "moderated"],
  ["Error", "failed"],
  ["Failed", "failed"],
  [notFound, "failed"],
])

/** They send results to an address of the caller's, past the gateway that has to see and charge them. */
const elsewhere = ["webhook_url", "webhook_secret"] as const

/** Black Forest Labs' FLUX. A job lives in the cluster that took it, so its polling address is used as given. */
export const bfl: ImageVendor = {
  vendor: "bfl",
  hosts: ["*.bfl.ai"],

  submit(ask, { baseUrl, upstreamModel }) {
    checkCount(ask.count, 1)
    const named = elsewhere.find((name) => (ask.extra[name] ?? null) !== null)
    if (named !== undefined) throw new GatewayError("invalid_parameter", `${named}: cannot be used through the gateway`)
    return {
      method: "POST",
      url: `${baseUrl}/${encodeURIComponent(upstreamModel)}`,
      body: { ...vendorFields(ask.extra, ["output_format"]), prompt: ask.prompt, ...sizeOf(ask, upstreamModel) },
    }
  },

  readSubmit(reply) {
    const id = textAt(reply.json, "id")
    const polling = addressAt(reply.json, "polling_url")
    if (polling !== null) return { kind: "accepted", ref: { id, polling } }
    if (id !== null) return { kind: "accepted", ref: { id, polling: null } }
    const error = errorText(reply.json)
    return error === null ? unreadable(reply) : { kind: "failed", reason: error }
  },

  poll(ref, { baseUrl }) {
    return { method: "GET", url: pollingUrl(ref, baseUrl) }
  },

  readPoll(reply) {
    const word = textAt(reply.json, "status") ?? textAt(reply.json, "state")
    if (word === null || !(isOk(reply) || word === notFound)) return unreadable(reply)
    switch (statuses.get(word)) {
      case "ready":
        return finished([at(reply.json, "result", "sample")])
      case "moderated":
        return { kind: "failed", reason: moderation(word, reply.json) }
      case "failed":
        return { kind: "failed", reason: reasonText(`${word}: ${detail(reply.json) ?? "the vendor gave no reason"}`) }
      default:
        return { kind: "waiting" }
    }
  },
}

function sizeOf(ask: ImageAsk, model: string): JsonObject {
  if (ask.size === null) return {}
  const fitted = fitSize(ask.size, sizes.find((row) => row.models.test(model))!.rule)
  return fitted.kind === "ratio" ? { aspect_ratio: fitted.ratio } : { width: fitted.width, height: fitted.height }
}

function pollingUrl(ref: JsonValue, baseUrl: string): string {
  const polling = textAt(ref, "polling")
  if (polling === null) return `${baseUrl}/get_result?id=${encodeURIComponent(refText(ref, "id"))}`
  const id = textAt(ref, "id")
  const url = new URL(polling)
  if (id === null || url.searchParams.has("id")) return polling
  url.searchParams.set("id", id)
  return url.href
}

function moderation(word: string, json: JsonValue): string {
  const what = word === "Request Moderated" ? "the request" : "the image"
  const reasons = listOf(at(json, "details", "Moderation Reasons")).filter((reason) => typeof reason === "string")
  const why = reasons.length === 0 ? word : `${word}: ${reasons.join(", ")}`
  return reasonText(`${what} was refused by the vendor's moderation (${why})`)
}

function detail(json: JsonValue): string | null {
  return errorText(json) ?? errorText(at(json, "details")) ?? errorText(at(json, "result")) ?? textAt(json, "details")
}
