import type { Endpoint } from "../core/endpoints.ts"
import { isObject } from "../core/json.ts"
import { type Fields, listOf, stringOf } from "./fields.ts"

/** What a request gives a model to read, for counting. Pictures, audio and files in it are nothing here. */
export interface Prompt {
  readonly texts: readonly string[]
  /** Tokens beside those of the texts. */
  readonly extra: number
}

/** What a message adds to the prompt besides its text, and what the answer's opening adds. */
const tokensPerMessage = 3
const tokensOfOpening = 3

/** Reads the prompt out of a request as the caller wrote it; odd shapes as far as they can be read. */
export function promptOf(endpoint: Endpoint, request: Fields): Prompt {
  return readers[endpoint](request)
}

const readers: Readonly<Record<Endpoint, (request: Fields) => Prompt>> = {
  chat: ({ messages, tools }) => conversation(listOf(messages).map(chatMessage), tools),
  responses: ({ instructions, input, tools }) =>
    conversation([...present(stringOf(instructions)), ...responsesInput(input)], tools),
  messages: ({ system, messages, tools }) =>
    conversation([...present(contentText(system)), ...listOf(messages).map(messagesMessage)], tools),
  embeddings: ({ input }) => embeddingsInput(input),
  rerank: ({ query, documents }) => rerankInput(query, documents),
  image_generations: prompted,
  image_edits: prompted,
  image_variations: prompted,
  speech: ({ input, instructions }) => plain([stringOf(input), stringOf(instructions)]),
  transcriptions: prompted,
  translations: prompted,
  video: prompted,
}

function conversation(messages: readonly string[], tools: unknown): Prompt {
  return {
    texts: Array.isArray(tools) ? [...messages, JSON.stringify(tools)] : messages,
    extra: tokensOfOpening + tokensPerMessage * messages.length,
  }
}

function prompted({ prompt }: Fields): Prompt {
  return plain([stringOf(prompt)])
}

function plain(texts: readonly string[]): Prompt {
  return { texts, extra: 0 }
}

/** The text of a message: its role, its content or the text parts of it, and the tool calls it repeats. */
function chatMessage(message: unknown): string {
  if (!isObject(message)) return ""
  const { role, content, tool_calls: calls } = message
  return joined([stringOf(role), contentText(content), Array.isArray(calls) ? JSON.stringify(calls) : ""])
}

function responsesInput(input: unknown): readonly string[] {
  return typeof input === "string" ? [joined(["user", input])] : listOf(input).map(responsesItem)
}

function responsesItem(item: unknown): string {
  if (!isObject(item)) return ""
  switch (item.type) {
    case "function_call":
    case "custom_tool_call":
      return joined([stringOf(item.name), stringOf(item.arguments), stringOf(item.input)])
    case "function_call_output":
    case "custom_tool_call_output":
      return contentText(item.output)
    case "reasoning":
      return joined([contentText(item.summary), contentText(item.content)])
    default:
      return joined([stringOf(item.role), contentText(item.content)])
  }
}

function messagesMessage(message: unknown): string {
  if (!isObject(message)) return ""
  const { role, content } = message
  const said = typeof content === "string" ? [content] : listOf(content).map(messagesBlock)
  return joined([stringOf(role), ...said])
}

function messagesBlock(block: unknown): string {
  if (!isObject(block)) return ""
  switch (block.type) {
    case "text":
      return stringOf(block.text)
    case "thinking":
      return stringOf(block.thinking)
    case "tool_use":
      return joined([stringOf(block.name), JSON.stringify(block.input ?? {})])
    case "tool_result":
      return contentText(block.content)
    default:
      return ""
  }
}

/** Content is a text or a list of parts, of which those of text and of refusals count. */
function contentText(content: unknown): string {
  if (typeof content === "string") return content
  return joined(listOf(content).map((part) => (isObject(part) ? stringOf(part.text) || stringOf(part.refusal) : "")))
}

/** Texts, or tokens that the caller has made of them already. */
function embeddingsInput(input: unknown): Prompt {
  if (typeof input === "string") return plain([input])
  const texts: string[] = []
  let extra = 0
  for (const entry of listOf(input)) {
    if (typeof entry === "number") extra += 1
    else if (Array.isArray(entry)) extra += entry.length
    else texts.push(isObject(entry) ? stringOf(entry.text) : stringOf(entry))
  }
  return { texts, extra }
}

/** The query counts once: vendors read it with every document, but an estimate should be in the customer's favour. */
function rerankInput(query: unknown, documents: unknown): Prompt {
  return plain([query, ...listOf(documents)].map(documentText))
}

/** A document is a text, or has it in `text` or in fields of the caller's own naming; `image` is a picture. */
function documentText(document: unknown): string {
  if (!isObject(document)) return stringOf(document)
  if (typeof document.text === "string") return document.text
  return joined(Object.entries(document).map(([name, value]) => (name === "image" ? "" : stringOf(value))))
}

function present(text: string): readonly string[] {
  return text === "" ? [] : [text]
}

function joined(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n")
}
