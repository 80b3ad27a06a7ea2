import type { ImageAsk, ImageProgress, ImageVendor } from "../../core/image-vendor.ts"
import type { JsonObject, JsonValue } from "../../core/json.ts"
import { addressAt, at, errorText, isOk, refText, textAt, unreadable } from "../reply.ts"
import { anySize, fitSize, ratios, type SizeRule } from "../size-rule.ts"
import { finished } from "./picture.ts"
import { checkCount, vendorFields } from "./vendor-fields.ts"

/**
 * How long the answer to a submit may be held back for the result. Short, because until it comes the job has no name yet that
 * it could be cancelled by for a caller who leaves.
 */
const waitSeconds = 1

interface ModelRow {
  readonly models: RegExp
  readonly sizes: SizeRule
  /** How a size in pixels is written: as `width` and `height`, besides `aspect_ratio: "custom"`, or as one `size`. */
  readonly pixelsAs: "sides" | "custom" | "size"
  readonly most: number | null
  readonly countAs: string
  readonly knows: readonly string[]
}

const usual = {
  sizes: anySize,
  pixelsAs: "sides",
  most: null,
  countAs: "num_outputs",
  knows: ["output_format"],
} as const
const single = { ...usual, most: 1 } as const

const fluxRatios = ratios("1:1 16:9 21:9 3:2 2:3 4:5 5:4 3:4 4:3 9:16 9:21")

/*
 * Every model has its own inputs. These are known by their published schemas; another one gets the usual names, and Replicate judges.
 * The first row that fits counts.
 */
// biome-ignore format: a table
const models: readonly ModelRow[] = [
  { ...single, models: /^black-forest-labs\/flux-(1\.1-pro-ultra|kontext)/, sizes: fluxRatios },
  { ...single, models: /^black-forest-labs\/flux-(1\.1-)?pro\b/, sizes: { kind: "pixels", sides: [256, 1440], multipleOf: 32 }, pixelsAs: "custom" },
  { ...single, models: /^black-forest-labs\/flux-2-/, sizes: { kind: "pixels", sides: [256, 2048], multipleOf: 16 }, pixelsAs: "custom" },
  { ...usual, models: /^black-forest-labs\/flux-/, sizes: fluxRatios, most: 4 },
  { ...single, models: /^google\/imagen-/, sizes: ratios("1:1 9:16 16:9 3:4 4:3") },
  { ...single, models: /^ideogram-ai\//, sizes: ratios("1:3 3:1 1:2 2:1 9:16 16:9 10:16 16:10 2:3 3:2 3:4 4:3 4:5 5:4 1:1") },
  { ...single, models: /^stability-ai\/stable-diffusion-3/, sizes: ratios("1:1 16:9 21:9 3:2 2:3 4:5 5:4 9:16 9:21") },
  { ...single, models: /^recraft-ai\//, pixelsAs: "size", knows: ["style"] },
  { ...usual, models: /^openai\/gpt-image-/, sizes: ratios("1:1 3:2 2:3"), countAs: "number_of_images", most: 10,
    knows: ["output_format", "quality", "background", "moderation", "output_compression", "input_fidelity"] },
  { ...usual, models: /^/ },
]

/** Only these words are verdicts; a prediction that is still running may already show a part of its output. */
const statuses: ReadonlyMap<string, "waiting" | "succeeded" | "failed"> = new Map([
  ["starting", "waiting"],
  ["processing", "waiting"],
  ["succeeded", "succeeded"],
  ["failed", "failed"],
  ["canceled", "failed"],
  ["aborted", "failed"],
])

export const replicate: ImageVendor = {
  vendor: "replicate",
  hosts: ["api.replicate.com"],

  submit(ask, { baseUrl, upstreamModel }) {
    const row = models.find((candidate) => candidate.models.test(upstreamModel))!
    checkCount(ask.count, row.most)
    const version = versionOf(upstreamModel)
    const path = version === null ? `/models/${upstreamModel.split("/").map(encodeURIComponent).join("/")}` : ""
    return {
      method: "POST",
      url: `${baseUrl}${path}/predictions`,
      headers: { prefer: `wait=${waitSeconds}` },
      body: { ...(version === null ? {} : { version }), input: inputOf(ask, row) },
    }
  },

  readSubmit(reply) {
    const progress = readPrediction(reply.json)
    if (progress === null || progress.kind === "waiting") {
      const id = textAt(reply.json, "id")
      const get = addressAt(reply.json, "urls", "get")
      if (id !== null || get !== null) {
        return { kind: "accepted", ref: { id, get, cancel: addressAt(reply.json, "urls", "cancel") } }
      }
      const error = errorText(reply.json)
      return error === null ? unreadable(reply) : { kind: "failed", reason: error }
    }
    return progress
  },

  poll(ref, { baseUrl }) {
    return { method: "GET", url: predictionUrl(ref, baseUrl) }
  },

  readPoll(reply) {
    return (isOk(reply) ? readPrediction(reply.json) : null) ?? unreadable(reply)
  },

  cancel(ref, { baseUrl }) {
    return { method: "POST", url: textAt(ref, "cancel") ?? `${predictionUrl(ref, baseUrl)}/cancel` }
  },
}

function inputOf(ask: ImageAsk, row: ModelRow): JsonObject {
  return {
    ...vendorFields(ask.extra, row.knows),
    prompt: ask.prompt,
    ...(ask.count === 1 ? {} : { [row.countAs]: ask.count }),
    ...(ask.size === null ? {} : sizeOf(ask.size, row)),
  }
}

function sizeOf(size: NonNullable<ImageAsk["size"]>, row: ModelRow): JsonObject {
  const fitted = fitSize(size, row.sizes)
  if (fitted.kind === "ratio") return { aspect_ratio: fitted.ratio }
  const { width, height } = fitted
  switch (row.pixelsAs) {
    case "sides":
      return { width, height }
    case "custom":
      return { aspect_ratio: "custom", width, height }
    case "size":
      return { size: `${width}x${height}` }
  }
}

/** A community model is run by its version: `owner/name:version`, or the version alone. */
function versionOf(model: string): string | null {
  const [name, version] = model.split(":")
  if (version !== undefined) return version
  return name!.includes("/") ? null : name!
}

function predictionUrl(ref: JsonValue, baseUrl: string): string {
  return textAt(ref, "get") ?? `${baseUrl}/predictions/${encodeURIComponent(refText(ref, "id"))}`
}

/** What a prediction says of itself, or null where the reply is none. */
function readPrediction(json: JsonValue): Extract<ImageProgress, { kind: "waiting" | "succeeded" | "failed" }> | null {
  const word = textAt(json, "status")
  if (word === null) return null
  switch (statuses.get(word)) {
    case "succeeded":
      return finished(
        outputs(at(json, "output")),
        at(json, "data_removed") === true ? "the result has expired: the vendor has removed it" : undefined,
      )
    case "failed":
      return { kind: "failed", reason: errorText(json) ?? `the prediction ended as "${word}"` }
    default:
      return { kind: "waiting" }
  }
}

/** The output has the model's own shape: an address, a list of them, or an object around either. */
function outputs(output: JsonValue | undefined): readonly JsonValue[] {
  const inner = at(output, "images") ?? at(output, "image") ?? at(output, "url") ?? output ?? []
  const list: readonly JsonValue[] = Array.isArray(inner) ? inner : [inner]
  return list.map((item) => at(item, "url") ?? item)
}
