import { isObject } from "../../../src/core/json.ts"
import { type Conversation, contentText, toolFrom } from "../conversation.ts"
import { readJson } from "../json-body.ts"

/** What an answer of the messages API depends on. */
export interface MessagesAsk extends Conversation {
  /** Zero warms the cache and has nothing said. */
  readonly maxTokens: number
}

type Block = Readonly<Record<string, unknown>>

export function readMessagesAsk(bytes: Uint8Array, isCount: boolean): MessagesAsk | { readonly problem: string } {
  const body = readJson(bytes)
  if (!isObject(body)) return { problem: "The request body is not valid JSON" }
  const { model, messages, max_tokens: maxTokens = isCount ? 1 : undefined } = body
  if (typeof model !== "string" || model === "") return { problem: "model: Field required" }
  if (typeof maxTokens !== "number") return { problem: "max_tokens: Field required" }
  if (!Array.isArray(messages)) return { problem: "messages: Field required" }
  if (!messages.every(isObject)) return { problem: "messages: Input should be an object" }
  if (messages.length === 0) return { problem: "messages: at least one message is required" }
  const results = blocksOf(messages.at(-1)).filter(({ type }) => type === "tool_result")
  const system = contentText(body.system).length
  return {
    model,
    maxTokens,
    stream: body.stream === true,
    messageCount: messages.length,
    promptLength: messages.reduce((sum, message) => sum + textOf(message).length, system),
    lastRole: results.length > 0 ? "tool" : String(messages.at(-1)?.role ?? ""),
    lastText:
      results.length > 0 ? results.map(({ content }) => contentText(content)).join(" ") : textOf(messages.at(-1)),
    lastUserText: contentText(
      messages.findLast(({ role, content }) => role === "user" && contentText(content) !== "")?.content,
    ),
    tools: Array.isArray(body.tools) ? body.tools.flatMap((tool) => toolFrom(tool, "input_schema")) : [],
    toolChoice: choiceOf(body.tool_choice),
  }
}

function blocksOf(message: Block | undefined): readonly Block[] {
  return Array.isArray(message?.content) ? message.content.filter(isObject) : []
}

/** Everything readable in a message, tools' results included. */
function textOf(message: Block | undefined): string {
  const results = blocksOf(message).flatMap(({ type, content }) => (type === "tool_result" ? contentText(content) : []))
  return [contentText(message?.content), ...results].join(" ").trim()
}

function choiceOf(choice: unknown): string {
  if (!isObject(choice)) return "auto"
  if (choice.type === "tool" && typeof choice.name === "string") return choice.name
  return choice.type === "any" ? "required" : String(choice.type)
}
