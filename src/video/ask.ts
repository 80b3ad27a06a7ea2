import { GatewayError } from "../core/errors.ts"
import type { JsonObject, JsonValue } from "../core/json.ts"
import type { VideoAsk } from "../core/video-vendor.ts"
import { dataUrlBase64 } from "./picture-bytes.ts"

/** A video request as the caller wrote it. */
export interface VideoRequest extends Omit<VideoAsk, "image"> {
  /** An https URL or a picture's data URL, whose content nobody has looked at yet. */
  readonly image: string | null
}

export const mostPromptCharacters = 20_000
export const mostSeconds = 60
export const longestSide = 8192

/** The vendors' names for a number of videos. A job makes one, so they go no further. */
// biome-ignore format: a list
const counts = [
  "n", "num_videos", "num_outputs", "num_samples", "number_of_videos", "numberOfVideos", "numVideos", "sample_count", "sampleCount",
  "video_count", "videoCount", "batch_size",
]

/** Fields that are read here; all others go along as the vendor's own. */
const readHere: ReadonlySet<string> = new Set(["model", "prompt", "size", "duration", "image_url", "image", ...counts])

/** Reads and checks a video request. A field that is null counts as left out, as clients write it. */
export function readVideoAsk(body: JsonObject): VideoRequest {
  for (const name of counts) refuseMany(name, body[name])
  return {
    prompt: readPrompt(body.prompt),
    size: readSize(body.size),
    duration: readDuration(body.duration),
    image: readImage(body),
    extra: Object.fromEntries(Object.entries(body).filter(([name]) => !readHere.has(name))),
  }
}

function refuseMany(name: string, count: JsonValue | undefined): void {
  if (count === undefined || count === null || count === 1) return
  throw refusal(name, "must be 1 or left out: one job makes one video")
}

function readPrompt(prompt: JsonValue | undefined): string {
  if (typeof prompt !== "string" || prompt.trim() === "") throw refusal("prompt", "must be a non-empty string")
  if (isLonger(prompt, mostPromptCharacters)) {
    throw refusal("prompt", `must have at most ${mostPromptCharacters} characters`)
  }
  return prompt
}

/** Characters outside the basic plane are two units of a string and one of what people count. */
function isLonger(text: string, most: number): boolean {
  return text.length > most && (text.length > 2 * most || [...text].length > most)
}

function readSize(size: JsonValue | undefined): VideoAsk["size"] {
  if (size === undefined || size === null) return null
  const match = typeof size === "string" ? /^([1-9]\d{0,3})x([1-9]\d{0,3})$/.exec(size) : null
  const [width, height] = [Number(match?.[1]), Number(match?.[2])]
  if (width <= longestSide && height <= longestSide) return { width, height }
  throw refusal("size", `must be "<width>x<height>", each side a whole number from 1 to ${longestSide}`)
}

function readDuration(duration: JsonValue | undefined): number | null {
  if (duration === undefined || duration === null) return null
  const isWhole = typeof duration === "number" && Number.isInteger(duration)
  if (isWhole && duration >= 1 && duration <= mostSeconds) return duration
  throw refusal("duration", `must be a whole number of seconds from 1 to ${mostSeconds}`)
}

/** Both names mean the same picture, so they may not mean two. */
function readImage(body: JsonObject): string | null {
  const [first, second] = [readPicture("image_url", body.image_url), readPicture("image", body.image)]
  if (first !== null && second !== null && first !== second) {
    throw refusal("image", 'must be left out or the same as "image_url", which it is another name for')
  }
  return first ?? second
}

function readPicture(name: string, value: JsonValue | undefined): string | null {
  if (value === undefined || value === null) return null
  if (typeof value === "string" && (isHttps(value) || dataUrlBase64(value) !== null)) return value
  throw refusal(name, "must be an https URL or a data URL of a picture (data:image/png;base64,…)")
}

function isHttps(text: string): boolean {
  return /^https:\/\/\S+$/i.test(text) && URL.canParse(text)
}

function refusal(field: string, problem: string): GatewayError {
  return new GatewayError("invalid_parameter", `${field}: ${problem}`)
}
