import { isObject } from "../../../src/core/json.ts"
import type { VideoAsk } from "../../memory.ts"
import type { Reply } from "../../wire/reply.ts"
import { pathOf, type VendorRequest } from "../protocol.ts"
import { type Body, bodyOf, isNoneOr, isText, isWhole, unitsFor } from "./fields.ts"
import { runwayError } from "./runway-errors.ts"

interface ModelRule {
  /** What films from text, and from a picture, can measure; null where it makes none. Any pair otherwise. */
  readonly fromText?: readonly string[] | null
  readonly fromPicture?: readonly string[]
  readonly length: (duration: unknown) => boolean
  readonly creditsPerSecond: number
}

const usualSeconds = 5
const longestPrompt = 1000
const upright = ["1280:720", "720:1280"]
const six = [...upright, "1104:832", "960:960", "832:1104", "1584:672"]
const eight = [...upright, "1080:1920", "1920:1080"]
const isVeoLength = (duration: unknown): boolean => isNoneOr(duration, [4, 6, 8])
const isAnyLength = (duration: unknown): boolean => isNoneOr(duration, ["auto"]) || isWhole(duration, 1, 30)

/** By how a model's name begins; the first that fits is taken. */
const rules: readonly (readonly [model: RegExp, rule: ModelRule])[] = [
  [
    /^gen4\.5$/,
    { fromText: upright, fromPicture: six, length: (duration) => isWhole(duration, 2, 10), creditsPerSecond: 12 },
  ],
  [
    /^gen4_turbo$/,
    { fromText: null, fromPicture: six, length: (duration) => isNoneOr(duration, [5, 10]), creditsPerSecond: 5 },
  ],
  [/^veo3/, { fromText: eight, fromPicture: eight, length: isVeoLength, creditsPerSecond: 40 }],
  [/^(?:seedance2|hailuo3|wan3|happyhorse_1|grok_imagine_1)/, { length: isAnyLength, creditsPerSecond: 20 }],
]

function ruleFor(model: unknown): ModelRule | undefined {
  return rules.find(([pattern]) => typeof model === "string" && pattern.test(model))?.[1]
}

export function creditsFor(model: unknown, seconds: number): number {
  return unitsFor(seconds, ruleFor(model)?.creditsPerSecond ?? 0)
}

/** Reads a submit, or refuses it as Runway does: naming each field that is wrong. */
export function readRunwayAsk(request: VendorRequest): VideoAsk | { readonly refusal: Reply } {
  const body = bodyOf(request)
  if (body === null) return { refusal: runwayError(400, "The body is not valid JSON.") }
  const { model, promptText, duration } = body
  const rule = ruleFor(model)
  const isFromText = pathOf(request).endsWith("/text_to_video")
  if (rule === undefined || (isFromText && rule.fromText === null)) return refused(["model"])
  const wrong = [
    ...(isRatio(body.ratio, isFromText ? rule.fromText : rule.fromPicture) ? [] : ["ratio"]),
    ...(rule.length(duration) ? [] : ["duration"]),
    ...(isPrompt(promptText, isFromText) ? [] : ["promptText"]),
    ...(isFromText || isPicture(body.promptImage) ? [] : ["promptImage"]),
    ...(body.seed === undefined || isWhole(body.seed, 0, 4_294_967_295) ? [] : ["seed"]),
  ]
  if (wrong.length > 0) return refused(wrong)
  const seconds = typeof duration === "number" ? duration : model === "veo3.1" ? 8 : usualSeconds
  return { prompt: String(promptText ?? ""), seconds, asked: { model } }
}

function refused(fields: readonly string[]): { readonly refusal: Reply } {
  const issues = fields.map((field) => ({ code: "invalid_value", path: [field], message: "Invalid input" }))
  return { refusal: runwayError(400, undefined, issues) }
}

function isRatio(ratio: unknown, allowed: ModelRule["fromText"]): boolean {
  return allowed ? isText(ratio) && allowed.includes(ratio) : typeof ratio === "string" && /^\d+:\d+$/.test(ratio)
}

function isPrompt(text: unknown, isNeeded: boolean): boolean {
  return isText(text, longestPrompt) || (text === undefined && !isNeeded)
}

function isPicture(picture: unknown): boolean {
  if (Array.isArray(picture)) return picture.length > 0 && picture.every(isPlaced)
  return isText(picture) && /^(?:https:\/\/|runway:\/\/|data:image\/)/.test(picture)
}

function isPlaced(picture: unknown): boolean {
  const place: Body = isObject(picture) ? picture : {}
  return isPicture(place.uri) && ["first", "last"].includes(String(place.position))
}
