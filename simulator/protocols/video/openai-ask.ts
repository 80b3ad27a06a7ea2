import type { VideoAsk } from "../../memory.ts"
import type { Reply } from "../../wire/reply.ts"
import { valuesOf } from "../../wire/request-parser.ts"
import { readForm } from "../multipart.ts"
import type { VendorRequest } from "../protocol.ts"
import { errorReply } from "../vendor-errors.ts"
import { type Body, bodyOf, isNoneOr, isText } from "./fields.ts"

const usualModel = "sora-2"
const smallSizes = ["720x1280", "1280x720"]
const bigSizes = ["1024x1792", "1792x1024"]

/** Reads a submit, a form or JSON, or refuses it as OpenAI does. */
export function readOpenaiAsk(request: VendorRequest): VideoAsk | { readonly refusal: Reply } {
  const body = fieldsOf(request)
  if (body === null) return refused("We could not parse the body of your request.", null)
  const { prompt, model = usualModel, seconds = "4", size = "720x1280" } = body
  if (!isText(prompt)) return refused("Missing required parameter: 'prompt'.", "prompt")
  if (!isText(model)) return refused("Invalid value: 'model'.", "model")
  if (typeof seconds !== "string") {
    return refused(
      `Invalid type for 'seconds': expected one of '4', '8', or '12', but got a ${typeof seconds}.`,
      "seconds",
    )
  }
  if (!isLength(seconds, model)) return refused(`Invalid value: '${seconds}'.`, "seconds")
  if (!isSize(size, model)) return refused(`Invalid value: '${size}'.`, "size")
  return { prompt, seconds: Number(seconds), asked: { model, size } }
}

function refused(message: string, param: string | null): { readonly refusal: Reply } {
  return { refusal: errorReply(400, { message, param, code: "invalid_value" }) }
}

function fieldsOf(request: VendorRequest): Body | null {
  const [type = ""] = valuesOf(request.headers, "content-type")
  if (!type.startsWith("multipart/")) return bodyOf(request)
  const form = readForm(request.headers, request.body)
  return "problem" in form ? null : Object.fromEntries(form.fields)
}

/** Models of other servers have lengths and sizes of their own. */
function isLength(seconds: string, model: string): boolean {
  return model.startsWith("sora") ? isNoneOr(seconds, ["4", "8", "12"]) : /^\d+$/.test(seconds)
}

function isSize(size: unknown, model: string): boolean {
  if (model.startsWith("sora")) return isNoneOr(size, model.includes("pro") ? [...smallSizes, ...bigSizes] : smallSizes)
  return typeof size === "string" && /^\d+x\d+$/.test(size)
}
