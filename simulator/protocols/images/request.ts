import { isObject } from "../../../src/core/json.ts"
import { missing, notJson, readJson, type Unacceptable } from "../json-body.ts"
import { readForm, type Upload } from "../multipart.ts"
import type { VendorRequest } from "../protocol.ts"

const maxImages = 10

export type ImageTask = "generation" | "edit" | "variation"

/** What an image answer depends on. */
export interface ImagesAsk {
  readonly model: string
  readonly prompt: string
  readonly count: number
  readonly size: string
  readonly quality: string
  readonly outputFormat: string
  /** Null where nothing was said. */
  readonly responseFormat: string | null
  readonly stream: boolean
  readonly partialImages: number
  readonly uploads: readonly Upload[]
}

export function readImagesAsk(request: VendorRequest, task: ImageTask): ImagesAsk | Unacceptable {
  const read = readFields(request)
  if ("problem" in read) return { problem: read.problem, param: null }
  const { text, uploads } = read
  const model = text("model") ?? ""
  const count = Number(text("n") ?? 1)
  if (task !== "variation" && text("prompt") === undefined) return missing("prompt")
  if (task !== "generation" && uploads.length === 0 && text("image") === undefined) return missing("image")
  if (!Number.isInteger(count) || count < 1 || count > maxImages) {
    return { problem: `Invalid 'n': expected a whole number from 1 to ${maxImages}.`, param: "n" }
  }
  return {
    model,
    prompt: text("prompt") ?? "",
    count,
    size: text("size") ?? "1024x1024",
    quality: text("quality") ?? "high",
    outputFormat: text("output_format") ?? "png",
    responseFormat: text("response_format") ?? null,
    stream: text("stream") === "true",
    partialImages: Number(text("partial_images") ?? 0),
    uploads,
  }
}

interface Fields {
  text(name: string): string | undefined
  readonly uploads: readonly Upload[]
}

/** A form, or JSON, where what is no text is taken as its JSON. */
function readFields(request: VendorRequest): Fields | { readonly problem: string } {
  const body = readJson(request.body)
  if (isObject(body)) return { text: (name) => textOf(body[name]), uploads: [] }
  const form = readForm(request.headers, request.body)
  if ("problem" in form) return request.body[0] === "{".charCodeAt(0) ? notJson : form
  return { text: (name) => form.fields.get(name), uploads: form.files }
}

function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  return typeof value === "string" ? value : JSON.stringify(value)
}
