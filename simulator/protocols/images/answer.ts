import type { BehaviourOf } from "../../behaviour.ts"
import { keepFile } from "../files.ts"
import { tokens } from "../model-voice.ts"
import { type Bulk, bigPictureBase64, picture } from "../pictures.ts"
import type { VendorRequest } from "../protocol.ts"
import type { ImagesAsk } from "./request.ts"

type Step = BehaviourOf<"images">

const tokensPerImage = 1056
const tokensPerUpload = 323

/** Stands in the JSON for a picture too big to be made at once. */
export const bulkMarker = "@bulk@"

/** The body of an answer; where the step asks for big pictures, a marker stands for each. */
export function imagesBody(request: VendorRequest, ask: ImagesAsk, step: Step): object {
  const count = step.images ?? ask.count
  const asUrl = formatOf(ask, step) === "url"
  const entries = Array.from({ length: count }, (_, number) => ({
    ...(asUrl ? { url: keepFile(request, number, step.file) } : { b64_json: base64Of(number, step) }),
    ...(ask.uploads.length > 0 ? { revised_prompt: uploadsTold(ask) } : {}),
  }))
  return {
    created: Math.floor(Date.now() / 1000),
    model: ask.model,
    data: [...entries, ...failures(step)],
    ...settings(ask),
    usage: usageOf(ask, step, count),
  }
}

function formatOf(ask: ImagesAsk, step: Step): string {
  // Only the DALL-E models answer with addresses unless told otherwise.
  return step.format ?? ask.responseFormat ?? (ask.model.startsWith("dall-e") ? "url" : "b64_json")
}

function base64Of(number: number, step: Step): string {
  return step.megabytes === undefined ? picture(number).toString("base64") : bulkMarker
}

/** The big pictures that the markers stand for, in order. */
export function bulksOf(ask: ImagesAsk, step: Step): Bulk[] {
  const { megabytes } = step
  if (megabytes === undefined || formatOf(ask, step) === "url") return []
  return Array.from({ length: step.images ?? ask.count }, (_, number) => bigPictureBase64(number, megabytes))
}

function failures(step: Step): object[] {
  const error = {
    code: step.error?.code ?? "OutputImageSensitiveContentDetected",
    message: step.error?.message ?? "The request failed because the output image may contain sensitive information.",
  }
  return Array.from({ length: step.failedEntries ?? 0 }, () => ({ error }))
}

/** What every answer and event repeats of the picture's making. */
export function settings(ask: ImagesAsk): object {
  return { background: "opaque", output_format: ask.outputFormat, quality: ask.quality, size: ask.size }
}

export function usageOf(ask: ImagesAsk, step: Step, images: number): object | undefined {
  if (step.usage !== undefined) return step.usage === "none" ? undefined : step.usage
  const [text, image] = [tokens(ask.prompt.length), tokensPerUpload * ask.uploads.length]
  const output = tokensPerImage * images
  return {
    input_tokens: text + image,
    input_tokens_details: { text_tokens: text, image_tokens: image },
    output_tokens: output,
    total_tokens: text + image + output,
  }
}

function uploadsTold({ uploads, prompt }: ImagesAsk): string {
  return `${uploads.map(({ fileName, bytes }) => `${fileName} (${bytes.length} bytes)`).join(", ")}: ${prompt}`
}
