import { isObject, type JsonObject } from "../core/json.ts"
import type { Field } from "./fields.ts"
import { listOf, textOf } from "./responses-fields.ts"

/** Where the blocks of the dialect keep words that a model can read, in the order in which they make sense. */
const wordyFields = ["title", "context", "url", "text", "stdout", "stderr", "error_code"] as const

/** Blocks inside blocks inside blocks: no client goes this deep, and nothing is lost by not following one that does. */
const deepest = 8

/** What a tool message cannot hold stands in the user message after it. */
export interface ToolAnswer {
  readonly text: string
  readonly media: readonly JsonObject[]
}

/** The parts that a user's block becomes; `pdf`: the upstream reads PDF files. Empty text gives none, for upstreams refuse it. */
export function blockParts(block: JsonObject, pdf: boolean, depth = 0): readonly JsonObject[] {
  if (block.type === "image") return [imagePart(block.source)]
  if (block.type === "document") return depth > deepest ? [] : documentParts(block, pdf, depth)
  return textParts(flatText(block))
}

export function textParts(text: string): readonly JsonObject[] {
  return text === "" ? [] : [{ type: "text", text }]
}

/** Parts as chat content: plain text where there is nothing else, which more servers take. */
export function contentOf(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  return parts.every(isText) ? parts.map(({ text }) => textOf(text)).join("\n") : parts
}

/** What a tool_result says. Chat completions have no mark for a failed call, so the words have to tell. */
export function toolAnswer({ content, is_error: failed }: JsonObject, pdf: boolean): ToolAnswer {
  const parts =
    typeof content === "string"
      ? textParts(content)
      : listOf(content).flatMap((block) => (isObject(block) ? blockParts(block, pdf) : textParts(textOf(block))))
  const media = parts.filter((part) => !isText(part))
  const said = parts
    .filter(isText)
    .map(({ text }) => textOf(text))
    .join("\n")
  const text = said === "" && media.length > 0 ? mediaPlaceholder(media) : said
  return { text: failed === true ? asFailure(text) : text, media }
}

/** All the words in a block, or in a list of them, whatever its type. */
export function flatText(value: Field, depth = 0): string {
  if (typeof value === "string") return value
  if (depth > deepest) return ""
  if (Array.isArray(value)) return lines(listOf(value).map((entry) => flatText(entry, depth + 1)))
  if (!isObject(value)) return ""
  if (value.type === "text") return textOf(value.text)
  if (value.type === "image") return "[image]"
  if (value.type === "tool_reference") return `tool: ${textOf(value.tool_name)}`
  const { source, content } = value
  const words = wordyFields.map((field) => textOf(value[field]))
  return lines([...words, sourceText(source, depth + 1), flatText(content, depth + 1)])
}

function sourceText(source: Field, depth: number): string {
  if (!isObject(source)) return textOf(source)
  return source.type === "text" ? textOf(source.data) : lines([textOf(source.url), flatText(source.content, depth)])
}

function lines(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n")
}

function isText(part: JsonObject): boolean {
  return part.type === "text"
}

function imagePart(source: Field): JsonObject {
  const { type, url, media_type: mediaType, data } = isObject(source) ? source : {}
  if (type === "url" && typeof url === "string") return { type: "image_url", image_url: { url } }
  if (type === "base64" && typeof mediaType === "string" && typeof data === "string") {
    return { type: "image_url", image_url: { url: `data:${mediaType};base64,${data}` } }
  }
  return { type: "text", text: type === "file" ? "[image omitted: file reference]" : "[image omitted]" }
}

function documentParts(block: JsonObject, pdf: boolean, depth: number): readonly JsonObject[] {
  const source = isObject(block.source) ? block.source : {}
  const heading = lines([textOf(block.title), textOf(block.context)])
  if (source.type === "text") return textParts(lines([heading, textOf(source.data)]))
  if (source.type === "content") {
    const inner = typeof source.content === "string" ? [{ type: "text", text: source.content }] : listOf(source.content)
    return [...textParts(heading), ...inner.flatMap((part) => (isObject(part) ? blockParts(part, pdf, depth + 1) : []))]
  }
  if (source.type === "base64" && pdf && typeof source.data === "string") {
    return [...textParts(textOf(block.context)), pdfPart(textOf(block.title), source.data)]
  }
  return textParts(lines([heading, omittedDocument(source)]))
}

function pdfPart(title: string, data: string): JsonObject {
  const filename = title === "" ? "document.pdf" : title
  return { type: "file", file: { filename, file_data: `data:application/pdf;base64,${data}` } }
}

function omittedDocument(source: JsonObject): string {
  if (source.type === "url") return `[document: ${textOf(source.url)}]`
  if (source.type === "file") return "[document omitted: file reference]"
  return source.type === "base64" ? "[document omitted: this model cannot read PDF]" : "[document omitted]"
}

function mediaPlaceholder(media: readonly JsonObject[]): string {
  return media.some(({ type }) => type === "image_url") ? "[image]" : "[document]"
}

function asFailure(text: string): string {
  if (text === "") return "Error"
  return text.startsWith("Error") || text.startsWith("<tool_use_error>") ? text : `Error: ${text}`
}
