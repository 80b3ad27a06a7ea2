import { isObject, type JsonObject } from "../core/json.ts"
import { type Field, isAbsent, listAt, nameAt, objectAt, refuse, stringAt } from "./fields.ts"

/** The blocks for a message's content, a string or an array of parts. */
export function contentBlocks(content: Field, place: string): readonly JsonObject[] {
  if (isAbsent(content)) return []
  if (typeof content === "string") return textBlocks(content)
  return listAt(content, place, "must be a string or an array of parts").flatMap((part, index) =>
    partBlocks(objectAt(part, `${place}[${index}]`), `${place}[${index}]`),
  )
}

export function isBlank(text: string): boolean {
  return text.trim() === ""
}

/** Blank text gives no block: the vendor refuses one without a visible character. */
export function textBlocks(text: string): readonly JsonObject[] {
  return isBlank(text) ? [] : [{ type: "text", text }]
}

function partBlocks(part: JsonObject, place: string): readonly JsonObject[] {
  switch (part.type) {
    case "text":
    case "input_text":
    case "output_text":
      return textBlocks(stringAt(part.text, `${place}.text`))
    case "refusal":
      return textBlocks(stringAt(part.refusal, `${place}.refusal`))
    case "image_url":
      return [imageBlock(part.image_url, `${place}.image_url`)]
    case "file":
      return [fileBlock(objectAt(part.file, `${place}.file`), `${place}.file`)]
    default:
      return refuse(`${place}.type`, `content of the type ${JSON.stringify(part.type)} cannot be sent to this model`)
  }
}

function imageBlock(image: Field, place: string): JsonObject {
  const [field, at] = isObject(image) ? [image.url, `${place}.url`] : [image, place]
  const url = nameAt(field, at)
  return isWebAddress(url) ? { type: "image", source: { type: "url", url } } : dataBlock(url, at, undefined)
}

function fileBlock(file: JsonObject, place: string): JsonObject {
  if (isAbsent(file.file_data) && !isAbsent(file.file_id)) {
    return refuse(`${place}.file_id`, "this model cannot read stored files; send the content as file_data")
  }
  const url = nameAt(file.file_data, `${place}.file_data`)
  const title = typeof file.filename === "string" && file.filename !== "" ? file.filename : undefined
  if (isWebAddress(url)) return { type: "document", source: { type: "url", url }, title }
  return dataBlock(url, `${place}.file_data`, title)
}

function isWebAddress(url: string): boolean {
  return /^https?:\/\//i.test(url)
}

/** The kind of block follows from the data itself: callers put documents into image parts and images into file parts. */
function dataBlock(url: string, place: string, title: string | undefined): JsonObject {
  const { mediaType, data } = readDataUrl(url) ?? refuse(place, "must be an http(s) address or a base64 data: URL")
  if (mediaType.startsWith("image/")) return { type: "image", source: { type: "base64", media_type: mediaType, data } }
  if (mediaType === "application/pdf") {
    return { type: "document", source: { type: "base64", media_type: mediaType, data }, title }
  }
  if (mediaType.startsWith("text/")) {
    const text = Buffer.from(data, "base64").toString("utf8")
    return { type: "document", source: { type: "text", media_type: "text/plain", data: text }, title }
  }
  return refuse(place, `data of the type "${mediaType}" cannot be sent to this model; it reads images, PDF and text`)
}

/** Cut by position, not by pattern: the data may be many megabytes. */
function readDataUrl(url: string): { readonly mediaType: string; readonly data: string } | null {
  const comma = url.indexOf(",")
  if (comma < 0 || url.slice(0, 5).toLowerCase() !== "data:") return null
  const [mediaType = "", ...parameters] = url
    .slice(5, comma)
    .split(";")
    .map((part) => part.trim().toLowerCase())
  if (parameters.at(-1) !== "base64") return null
  // A common misspelling, which the vendor refuses.
  return { mediaType: mediaType === "image/jpg" ? "image/jpeg" : mediaType, data: url.slice(comma + 1) }
}
