import { isObject } from "../../../src/core/json.ts"
import type { VideoAsk } from "../../memory.ts"
import type { Reply } from "../../wire/reply.ts"
import { pathOf, type VendorRequest } from "../protocol.ts"
import { type Body, bodyOf, isNoneOr, isText, isWhole, partOf } from "./fields.ts"
import { googleError } from "./gemini-errors.ts"

const usualSeconds = 8
/** Only the same models on Vertex take these. */
const foreign = [
  "seed",
  "generateAudio",
  "fps",
  "outputGcsUri",
  "storageUri",
  "compressionQuality",
  "resizeMode",
  "pubsubTopic",
]
const people = ["allow_all", "allow_adult", "dont_allow"]

/** Reads a submit, or refuses it as Google does. */
export function readVeoAsk(request: VendorRequest): VideoAsk | { readonly refusal: Reply } {
  const [, model = ""] = /\/models\/([\w.-]+):/.exec(pathOf(request)) ?? []
  if (!model.startsWith("veo-")) {
    const message = `models/${model} is not found for API version v1beta, or is not supported for predictLongRunning.`
    return { refusal: googleError(404, message) }
  }
  const body = bodyOf(request)
  const [instance] = body !== null && Array.isArray(body.instances) ? body.instances : []
  if (body === null || !isObject(instance)) return refused("Invalid JSON payload received. `instances` is required.")
  const parameters = partOf(body, "parameters")
  const problem = instanceProblem(instance) ?? parameterProblem(parameters, model) ?? eightProblem(instance, parameters)
  if (problem !== null) return refused(problem)
  return {
    prompt: String(instance.prompt ?? ""),
    seconds: Number(parameters.durationSeconds ?? usualSeconds),
    asked: { model },
  }
}

function refused(message: string): { readonly refusal: Reply } {
  return { refusal: googleError(400, message) }
}

/** Pictures are bytes in the request; addresses are for other APIs. */
function instanceProblem(instance: Body): string | null {
  if (!isText(instance.prompt) && instance.image === undefined) return "`prompt` is required."
  for (const name of ["image", "lastFrame"]) {
    const picture = instance[name]
    if (picture === undefined) continue
    const isInline = isObject(picture) && isText(picture.bytesBase64Encoded) && isText(picture.mimeType)
    if (!isInline) return `\`${name}\` must have bytesBase64Encoded and mimeType.`
    if (!/^[\w+/-]+=*$/.test(String(picture.bytesBase64Encoded))) return `\`${name}.bytesBase64Encoded\` is not base64.`
  }
  return null
}

function parameterProblem(parameters: Body, model: string): string | null {
  const unknown = foreign.find((name) => parameters[name] !== undefined)
  if (unknown !== undefined) return `\`${unknown}\` isn't supported by this model.`
  const { durationSeconds, aspectRatio, resolution, sampleCount, personGeneration } = parameters
  if (durationSeconds !== undefined && typeof durationSeconds !== "number") {
    return "The value type for `durationSeconds` needs to be a number."
  }
  const isLength = model.startsWith("veo-2")
    ? isWhole(durationSeconds ?? 5, 5, 8)
    : isNoneOr(durationSeconds, [4, 6, 8])
  if (!isLength) return `The number value for \`durationSeconds\` is out of bound: ${durationSeconds}.`
  if (!isNoneOr(aspectRatio, ["16:9", "9:16"])) return `\`aspectRatio\` ${aspectRatio} isn't supported.`
  if (!isNoneOr(resolution, ["720p", "1080p", "4k"])) return `\`resolution\` ${resolution} isn't supported.`
  if (sampleCount !== undefined && !isWhole(sampleCount, 1, 4)) return "`sampleCount` is out of bound."
  return isNoneOr(personGeneration, people) ? null : `\`personGeneration\` ${personGeneration} isn't supported.`
}

/** Some things come only in films of eight seconds. */
function eightProblem(instance: Body, { resolution, durationSeconds = usualSeconds }: Body): string | null {
  const needs =
    ["1080p", "4k"].includes(String(resolution)) || instance.lastFrame !== undefined || instance.referenceImages
  return needs && durationSeconds !== usualSeconds ? "This request requires `durationSeconds` to be 8." : null
}
