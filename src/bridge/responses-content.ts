import type { JsonObject } from "../core/json.ts"
import { type Field, isAbsent, listAt, nameAt, objectAt, refuse, shown, stringAt } from "./fields.ts"

/** A content part: a text, or something else in the form chat completions give it. */
type Part = { readonly text: string } | { readonly media: JsonObject }

/** The content of a user message: a plain string where it can be one, since more upstreams take that. */
export function userContent(content: Field, place: string): string | readonly JsonObject[] {
  const parts = partsOf(content, place)
  const texts = parts.flatMap((part) => ("text" in part ? [part.text] : []))
  if (texts.length === parts.length) return texts.join("\n")
  return parts.map((part) => ("text" in part ? { type: "text", text: part.text } : part.media))
}

export function systemText(content: Field, place: string): string {
  return textsOf(content, place).join("\n\n")
}

export function assistantText(content: Field, place: string): string {
  return textsOf(content, place).join("")
}

/** What a function gave back: the text, and apart from it what a tool message cannot hold. */
export function outputContent(output: Field, place: string): { text: string; media: readonly JsonObject[] } {
  const parts = partsOf(output, place)
  const texts = parts.flatMap((part) => ("text" in part ? [part.text] : []))
  const media = parts.flatMap((part) => ("media" in part ? [part.media] : []))
  const text = texts.length === 0 && media.length > 0 ? "[see the attachment that follows]" : texts.join("\n")
  return { text, media }
}

function textsOf(content: Field, place: string): readonly string[] {
  return partsOf(content, place).map((part) => ("text" in part ? part.text : refuse(place, "can hold text only")))
}

/** The parts of a content; empty texts are left out, for upstreams refuse them. */
function partsOf(content: Field, place: string): readonly Part[] {
  if (typeof content === "string") return content === "" ? [] : [{ text: content }]
  return listAt(content, place, "must be a string or an array of parts")
    .map((part, index) => readPart(objectAt(part, `${place}[${index}]`), `${place}[${index}]`))
    .filter((part) => !("text" in part) || part.text !== "")
}

function readPart(part: JsonObject, place: string): Part {
  switch (part.type) {
    case "input_text":
    case "output_text":
    case "text":
      return { text: stringAt(part.text, `${place}.text`) }
    case "refusal":
      return { text: stringAt(part.refusal, `${place}.refusal`) }
    case "input_image":
      return { media: image(part, place) }
    case "input_file":
      return { media: file(part, place) }
    case "input_audio":
      return { media: { type: "input_audio", input_audio: objectAt(part.input_audio, `${place}.input_audio`) } }
    default:
      return refuse(`${place}.type`, `parts of type ${shown(part.type)} cannot be sent to this model's upstream`)
  }
}

function image(part: JsonObject, place: string): JsonObject {
  refuseUploaded(part, place, "image_url")
  const { detail } = part
  const url = nameAt(part.image_url, `${place}.image_url`)
  return { type: "image_url", image_url: { url, ...(isAbsent(detail) || detail === "auto" ? {} : { detail }) } }
}

function file(part: JsonObject, place: string): JsonObject {
  refuseUploaded(part, place, "file_data")
  if (!isAbsent(part.file_url)) refuse(`${place}.file_url`, "this model's upstream fetches no files; send file_data")
  const { filename } = part
  const data = nameAt(part.file_data, `${place}.file_data`)
  return { type: "file", file: { ...(isAbsent(filename) ? {} : { filename }), file_data: data } }
}

function refuseUploaded(part: JsonObject, place: string, instead: string): void {
  if (isAbsent(part.file_id)) return
  refuse(`${place}.file_id`, `this model's upstream does not have the uploaded file; send ${instead}`)
}
