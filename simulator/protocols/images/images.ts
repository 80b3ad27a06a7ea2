import type { BehaviourOf } from "../../behaviour.ts"
import type { Piece, Reply } from "../../wire/reply.ts"
import { eventStreamReply, pacedJsonReply, pacedWhole } from "../event-stream.ts"
import { openaiHeaders } from "../openai-headers.ts"
import type { Bulk } from "../pictures.ts"
import type { Protocol, VendorRequest } from "../protocol.ts"
import { errorReply } from "../vendor-errors.ts"
import { bulkMarker, bulksOf, imagesBody } from "./answer.ts"
import { type ImageTask, readImagesAsk } from "./request.ts"
import { imageEvents } from "./stream.ts"

/** OpenAI images, which Seedream's are like. */
export const imageGenerations = imagesProtocol("/images/generations", "generation")
export const imageEdits = imagesProtocol("/images/edits", "edit")
export const imageVariations = imagesProtocol("/images/variations", "variation")

function imagesProtocol(ending: string, task: ImageTask): Protocol {
  return {
    method: "POST",
    ending,
    answer: (request, step) => imagesReply(request, task, step.kind === "images" ? step : { kind: "images" }),
  }
}

function imagesReply(request: VendorRequest, task: ImageTask, step: BehaviourOf<"images">): Reply {
  const ask = readImagesAsk(request, task)
  if ("problem" in ask) return errorReply(400, { message: ask.problem, param: ask.param })
  if (ask.stream && step.ignoresStream !== true) {
    return eventStreamReply(imageEvents(ask, task, step), step, { headers: openaiHeaders() })
  }
  if (step.ending === "error") return errorReply(500, step.error)
  const body = imagesBody(request, ask, step)
  const bulks = bulksOf(ask, step)
  return bulks.length === 0 ? pacedJsonReply(body, step, openaiHeaders()) : pacedWhole(bulkReply(body, bulks), step)
}

/** JSON with big texts in the places of the markers, made as the client reads. */
function bulkReply(body: object, bulks: readonly Bulk[]): Reply {
  const texts = JSON.stringify(body)
    .split(bulkMarker)
    .map((text) => Buffer.from(text))
  const length = [...texts, ...bulks].reduce((sum, part) => sum + part.length, 0)
  const headers = [["content-type", "application/json"], ...openaiHeaders()] as const
  return { status: 200, headers, framing: "content-length", length, pieces: interleaved(texts, bulks) }
}

function* interleaved(texts: readonly Uint8Array[], bulks: readonly Bulk[]): Generator<Piece> {
  for (const [index, bytes] of texts.entries()) {
    yield { bytes }
    yield* bulks[index]?.pieces() ?? []
  }
}
