import type { Endpoint } from "../../core/endpoints.ts"
import { isObject } from "../../core/json.ts"
import type { TokenUsage } from "../../core/usage.ts"
import { readChatUsage } from "../../core/usage.ts"
import { mebibyte } from "../../lib/bytes.ts"
import { imageVendors } from "../../vendors/image/registry.ts"
import type { BodyKind, CallCarriage, Protocol, WholeReader } from "../protocol.ts"
import { EventsTap } from "../taps/events.ts"
import { disguisedError, fieldValue, passBody } from "./native.ts"

/** Everything but chat-type requests. */
const bodyLimit = 32 * mebibyte

/** An endpoint whose requests and answers pass as they are, but for the model's name. */
function passed(endpoint: Endpoint, bodies: readonly BodyKind[], answer: CallCarriage["answer"]): Protocol {
  const carriage: CallCarriage = { kind: "call", endpoint, body: passBody, tap: () => new EventsTap(), answer }
  return {
    endpoint,
    bodyLimit,
    bodies,
    requestFields: [],
    carriage({ upstream }) {
      const vendor = upstream.vendor.adapted?.includes(endpoint) ? imageVendors.get(upstream.vendor.name) : undefined
      return vendor === undefined ? carriage : { kind: "job", endpoint, vendor }
    },
  }
}

/** Small JSON answers are read whole, so that a broken one can still be replaced by another route's. */
function whole(expected: string): WholeReader {
  return {
    fields: ["usage", "error", expected],
    read(body, shape) {
      const problem = disguisedError(shape, expected)
      return problem === null ? { body, usage: usageOf(fieldValue(body, shape.fields.get("usage"))) } : { problem }
    },
  }
}

/** Embeddings and rerank report only what they read, some as `total_tokens` alone. */
function usageOf(usage: unknown): TokenUsage | null {
  return readChatUsage(isObject(usage) ? { prompt_tokens: usage.total_tokens, ...usage } : usage)
}

export const embeddings = passed("embeddings", ["json"], whole("data"))
export const rerank = passed("rerank", ["json"], whole("results"))
export const speech = passed("speech", ["json"], "pass_on")
export const transcriptions = passed("transcriptions", ["multipart"], "pass_on")
export const translations = passed("translations", ["multipart"], "pass_on")
export const imageGenerations = passed("image_generations", ["json"], "pass_on")
/** Vendors take edits as a form, newer ones as JSON with image addresses too. */
export const imageEdits = passed("image_edits", ["multipart", "json"], "pass_on")
export const imageVariations = passed("image_variations", ["multipart"], "pass_on")
