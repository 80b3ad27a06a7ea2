import { GatewayError } from "../../core/errors.ts"
import type { ImageAsk } from "../../core/image-vendor.ts"
import type { JsonObject, JsonValue } from "../../core/json.ts"

export const mostImages = 10
export const longestSide = 16_384

const responseFormats = ["url", "b64_json"] as const
export type ResponseFormat = (typeof responseFormats)[number]

/** Fields that are read here; all others go along as the vendor's own. */
const readHere: ReadonlySet<string> = new Set(["model", "prompt", "n", "size", "response_format", "stream"])

/** Reads an image request for a vendor whose images are jobs. A field that is null counts as left out, as clients write it. */
export function readImageAsk(body: JsonObject): ImageAsk & { readonly responseFormat: ResponseFormat } {
  const { prompt, stream } = body
  if (typeof prompt !== "string" || prompt.trim() === "") throw refusal("prompt", "must be a non-empty string")
  if (stream !== undefined && stream !== null && stream !== false) {
    throw refusal("stream", "this model makes its images as jobs and does not stream; leave it out")
  }
  return {
    prompt,
    count: readCount(body.n),
    size: readSize(body.size),
    responseFormat: readFormat(body.response_format),
    extra: Object.fromEntries(Object.entries(body).filter(([name]) => !readHere.has(name))),
  }
}

function readCount(n: JsonValue | undefined): number {
  if (n === undefined || n === null) return 1
  if (typeof n === "number" && Number.isInteger(n) && n >= 1 && n <= mostImages) return n
  throw refusal("n", `must be a whole number from 1 to ${mostImages}`)
}

function readSize(size: JsonValue | undefined): ImageAsk["size"] {
  if (size === undefined || size === null || size === "auto") return null
  const match = typeof size === "string" ? /^([1-9]\d{0,4})x([1-9]\d{0,4})$/.exec(size) : null
  const [width, height] = [Number(match?.[1]), Number(match?.[2])]
  if (width <= longestSide && height <= longestSide) return { width, height }
  throw refusal("size", `must be "<width>x<height>", each side from 1 to ${longestSide}, or "auto"`)
}

function readFormat(format: JsonValue | undefined): ResponseFormat {
  if (format === undefined || format === null) return "url"
  const known = responseFormats.find((name) => name === format)
  if (known === undefined) throw refusal("response_format", `must be one of: ${responseFormats.join(", ")}`)
  return known
}

function refusal(field: string, problem: string): GatewayError {
  return new GatewayError("invalid_parameter", `${field}: ${problem}`)
}
