import { isObject } from "../../src/core/json.ts"

/** What an answer to a conversation depends on, whichever protocol the conversation came in. */
export interface Conversation {
  readonly model: string
  readonly stream: boolean
  readonly messageCount: number
  /** Characters in all messages. */
  readonly promptLength: number
  /** `tool` if the last word is a tool's result. */
  readonly lastRole: string
  readonly lastText: string
  readonly lastUserText: string
  readonly tools: readonly Tool[]
  /** `none`, `auto`, `required`, or the name of the one tool to call. */
  readonly toolChoice: string
}

export interface Tool {
  readonly name: string
  readonly parameters: Readonly<Record<string, unknown>>
}

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON text. */
  readonly arguments: string
}

/** A tool from the object that has its name, and its schema under the key that the protocol uses. */
export function toolFrom(about: unknown, schemaKey: string): Tool[] {
  if (!isObject(about) || typeof about.name !== "string") return []
  const schema = about[schemaKey]
  return [{ name: about.name, parameters: isObject(schema) ? schema : {} }]
}

/** Content is text or a list of parts, of which only text counts here. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return content.map((part) => (isObject(part) && typeof part.text === "string" ? part.text : "")).join(" ")
}
