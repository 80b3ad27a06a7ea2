import { isObject } from "../../src/core/json.ts"

/** What a chat answer depends on. */
export interface ChatAsk {
  readonly model: string
  readonly stream: boolean
  readonly includeUsage: boolean
  readonly hasStreamOptions: boolean
  readonly messageCount: number
  /** Characters in all messages. */
  readonly promptLength: number
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

/** A request that the real vendor would refuse with 400. */
export interface Unacceptable {
  readonly problem: string
  readonly param: string | null
}

export function readChatAsk(bytes: Uint8Array): ChatAsk | Unacceptable {
  const body = parsed(bytes)
  if (!isObject(body)) return { problem: "We could not parse the JSON body of your request.", param: null }
  const { model, messages } = body
  if (typeof model !== "string" || model === "") return { problem: "you must provide a model parameter", param: null }
  if (!Array.isArray(messages)) return { problem: "Missing required parameter: 'messages'.", param: "messages" }
  if (!messages.every(isObject)) return { problem: "Invalid type for 'messages': expected objects.", param: "messages" }
  const last = messages.at(-1)
  return {
    model,
    stream: body.stream === true,
    includeUsage: isObject(body.stream_options) && body.stream_options.include_usage === true,
    hasStreamOptions: body.stream_options !== undefined,
    messageCount: messages.length,
    promptLength: messages.reduce((sum, message) => sum + textOf(message).length, 0),
    lastRole: typeof last?.role === "string" ? last.role : "",
    lastText: textOf(last),
    lastUserText: textOf(messages.findLast(({ role }) => role === "user")),
    tools: Array.isArray(body.tools) ? body.tools.flatMap(toolOf) : [],
    toolChoice: choiceOf(body.tool_choice),
  }
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

/** Content is text or a list of parts, of which only text counts here. */
function textOf(message: Record<string, unknown> | undefined): string {
  const content = message?.content
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return content.map((part) => (isObject(part) && typeof part.text === "string" ? part.text : "")).join(" ")
}

function toolOf(tool: unknown): Tool[] {
  const about = isObject(tool) && isObject(tool.function) ? tool.function : {}
  if (typeof about.name !== "string") return []
  return [{ name: about.name, parameters: isObject(about.parameters) ? about.parameters : {} }]
}

function choiceOf(choice: unknown): string {
  if (typeof choice === "string") return choice
  const named = isObject(choice) && isObject(choice.function) ? choice.function.name : undefined
  return typeof named === "string" ? named : "auto"
}
