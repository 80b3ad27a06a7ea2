import type { Endpoint } from "../../core/endpoints.ts"
import { type Reading, tokenReading } from "../../core/measured.ts"
import { readRerankUsage } from "../../core/rerank-usage.ts"
import { readInputUsage } from "../../core/usage.ts"
import { mebibyte } from "../../lib/bytes.ts"
import type { JsonShape } from "../../lib/json-bytes.ts"
import { imageVendors } from "../../vendors/image/registry.ts"
import { meterFor } from "../meters/choose.ts"
import { imageFields, measurePictures, measureSpeech, speechFields } from "../meters/request-measures.ts"
import { estimateUpload } from "../meters/upload-seconds.ts"
import type { CallCarriage, PassOn, Protocol, WholeReader } from "../protocol.ts"
import { EventsTap } from "../taps/events.ts"
import { disguisedError, fieldValue, passBody } from "./native.ts"

/** Everything but chat-type requests. */
const bodyLimit = 32 * mebibyte

type Particulars = Pick<Protocol, "bodies" | "measureRequest" | "estimateLength"> &
  Partial<Pick<Protocol, "requestFields">>

/** An endpoint whose requests and answers pass as they are, but for the model's name. */
function passed(endpoint: Endpoint, answer: CallCarriage["answer"], particulars: Particulars): Protocol {
  const carriage: CallCarriage = { kind: "call", endpoint, body: passBody, tap: () => new EventsTap(), answer }
  return {
    endpoint,
    bodyLimit,
    requestFields: [],
    ...particulars,
    carriage({ upstream }) {
      const vendor = upstream.vendor.adapted?.includes(endpoint) ? imageVendors.get(upstream.vendor.name) : undefined
      return vendor === undefined ? carriage : { kind: "job", endpoint, vendor }
    },
  }
}

type Values = (name: string) => unknown

/** Small JSON answers are read whole, so that a broken one can still be replaced by another route's. */
function whole(expected: string, fields: readonly string[], reading: (valueAt: Values) => Reading): WholeReader {
  return {
    kind: "whole",
    fields: [...fields, "error", expected],
    read(body, shape) {
      const problem = disguisedError(shape, expected)
      if (problem !== null) return { problem }
      return { body, reading: reading(valuesOf(body, shape)), produced: () => "" }
    },
  }
}

function valuesOf(body: Uint8Array, shape: JsonShape): Values {
  return (name) => fieldValue(body, shape.fields.get(name))
}

function passedOn(endpoint: Endpoint): PassOn {
  return { kind: "pass_on", meter: (contentType) => meterFor(endpoint, contentType) }
}

const embeddingsAnswer = whole("data", ["usage"], (valueAt) => tokenReading(readInputUsage(valueAt("usage"))))
const rerankAnswer = whole("results", ["usage", "meta"], (valueAt) =>
  readRerankUsage(valueAt("usage"), valueAt("meta")),
)

const sound = { bodies: ["multipart"], estimateLength: estimateUpload } as const
const pictures = { requestFields: imageFields, measureRequest: measurePictures } as const

export const embeddings = passed("embeddings", embeddingsAnswer, { bodies: ["json"] })
export const rerank = passed("rerank", rerankAnswer, { bodies: ["json"] })
export const speech = passed("speech", passedOn("speech"), {
  bodies: ["json"],
  requestFields: speechFields,
  measureRequest: measureSpeech,
})
export const transcriptions = passed("transcriptions", passedOn("transcriptions"), sound)
export const translations = passed("translations", passedOn("translations"), sound)
export const imageGenerations = passed("image_generations", passedOn("image_generations"), {
  bodies: ["json"],
  ...pictures,
})
/** Vendors take edits as a form, newer ones as JSON with image addresses too. */
export const imageEdits = passed("image_edits", passedOn("image_edits"), { bodies: ["multipart", "json"], ...pictures })
export const imageVariations = passed("image_variations", passedOn("image_variations"), {
  bodies: ["multipart"],
  ...pictures,
})
