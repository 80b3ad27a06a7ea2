import { isObject } from "../../src/core/json.ts"
import type { BehaviourOf } from "../behaviour.ts"
import { jsonReply, type Reply } from "../wire/reply.ts"
import { headDelay } from "./event-stream.ts"
import { missing, noModel, notJson, readJson } from "./json-body.ts"
import { tokens } from "./model-voice.ts"
import { openaiHeaders } from "./openai-headers.ts"
import type { Protocol, VendorRequest } from "./protocol.ts"
import { errorReply } from "./vendor-errors.ts"

const usualDimensions = 1536
const maxDimensions = 65_536

/** OpenAI embeddings, which Jina's and Voyage's are like. */
export const embeddings: Protocol = {
  method: "POST",
  ending: "/embeddings",
  answer: (request, step) => embeddingsReply(request, step.kind === "embeddings" ? step : { kind: "embeddings" }),
}

function embeddingsReply(request: VendorRequest, step: BehaviourOf<"embeddings">): Reply {
  const body = readJson(request.body)
  if (!isObject(body)) return errorReply(400, { message: notJson.problem })
  const { model, input } = body
  if (typeof model !== "string" || model === "") return errorReply(400, { message: noModel.problem })
  if (input === undefined) return errorReply(400, { message: missing("input").problem, param: "input" })
  const dimensions = step.dimensions ?? asked(body.dimensions ?? body.output_dimension)
  if (dimensions === null) {
    return errorReply(400, { message: `Invalid 'dimensions': 1 to ${maxDimensions}.`, param: "dimensions" })
  }
  const items = itemsOf(input)
  const data = items.map((item, index) => {
    const vector = vectorOf(JSON.stringify(item), dimensions)
    return { object: "embedding", index, embedding: body.encoding_format === "base64" ? base64(vector) : [...vector] }
  })
  const answer = { object: "list", data, model: step.model ?? model, usage: usageOf(items, step) }
  return { ...jsonReply(200, answer, openaiHeaders()), ...headDelay(step.headDelayMs ?? 0) }
}

function asked(dimensions: unknown): number | null {
  if (dimensions === undefined || dimensions === null) return usualDimensions
  const fits = Number.isInteger(dimensions) && Number(dimensions) >= 1 && Number(dimensions) <= maxDimensions
  return fits ? Number(dimensions) : null
}

/** One text, a list of texts, one text as tokens, or a list of those. */
function itemsOf(input: unknown): readonly unknown[] {
  if (!Array.isArray(input)) return [input]
  return input.length > 0 && input.every((item) => typeof item === "number") ? [input] : input
}

/** A vector of length one that depends on nothing but the text and its dimensions. */
export function vectorOf(text: string, dimensions: number): Float32Array {
  let state = Bun.hash.murmur32v3(text)
  const raw = Float64Array.from({ length: dimensions }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 31 - 1
  })
  const length = Math.sqrt(raw.reduce((sum, value) => sum + value * value, 0)) || 1
  return Float32Array.from(raw, (value) => value / length)
}

/** Little-endian 32-bit floats, as the vendor packs them. */
function base64(vector: Float32Array): string {
  return Buffer.from(vector.buffer).toString("base64")
}

function usageOf(items: readonly unknown[], step: BehaviourOf<"embeddings">): object | undefined {
  if (step.usage !== undefined) return step.usage === "none" ? undefined : step.usage
  const count = items.reduce<number>((sum, item) => sum + tokensIn(item), 0)
  return { prompt_tokens: count, total_tokens: count }
}

function tokensIn(item: unknown): number {
  return Array.isArray(item)
    ? item.length
    : tokens(typeof item === "string" ? item.length : JSON.stringify(item).length)
}
