import { isObject } from "../../src/core/json.ts"
import { type Conversation, contentText, toolFrom } from "./conversation.ts"
import { missing, noModel, notJson, readJson, type Unacceptable } from "./json-body.ts"

/** What a chat answer depends on. */
export interface ChatAsk extends Conversation {
  readonly includeUsage: boolean
  readonly hasStreamOptions: boolean
}

export function readChatAsk(bytes: Uint8Array): ChatAsk | Unacceptable {
  const body = readJson(bytes)
  if (!isObject(body)) return notJson
  const { model, messages } = body
  if (typeof model !== "string" || model === "") return noModel
  if (!Array.isArray(messages)) return missing("messages")
  if (!messages.every(isObject)) return { problem: "Invalid type for 'messages': expected objects.", param: "messages" }
  const last = messages.at(-1)
  return {
    model,
    stream: body.stream === true,
    includeUsage: isObject(body.stream_options) && body.stream_options.include_usage === true,
    hasStreamOptions: body.stream_options !== undefined,
    messageCount: messages.length,
    promptLength: messages.reduce((sum, { content }) => sum + contentText(content).length, 0),
    lastRole: typeof last?.role === "string" ? last.role : "",
    lastText: contentText(last?.content),
    lastUserText: contentText(messages.findLast(({ role }) => role === "user")?.content),
    tools: Array.isArray(body.tools) ? body.tools.flatMap(toolOf) : [],
    toolChoice: choiceOf(body.tool_choice),
  }
}

function toolOf(tool: unknown): ReturnType<typeof toolFrom> {
  return isObject(tool) ? toolFrom(tool.function, "parameters") : []
}

function choiceOf(choice: unknown): string {
  if (typeof choice === "string") return choice
  const named = isObject(choice) && isObject(choice.function) ? choice.function.name : undefined
  return typeof named === "string" ? named : "auto"
}
