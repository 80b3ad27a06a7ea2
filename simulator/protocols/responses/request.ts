import { isObject } from "../../../src/core/json.ts"
import { type Conversation, contentText, toolFrom } from "../conversation.ts"
import { missing, noModel, notJson, readJson, type Unacceptable } from "../json-body.ts"

/** What an answer of the responses API depends on, and the request's own fields, which it repeats. */
export interface ResponsesAsk extends Conversation {
  readonly body: Readonly<Record<string, unknown>>
}

type Item = Readonly<Record<string, unknown>>

export function readResponsesAsk(bytes: Uint8Array): ResponsesAsk | Unacceptable {
  const body = readJson(bytes)
  if (!isObject(body)) return notJson
  const { model, instructions } = body
  if (typeof model !== "string" || model === "") return noModel
  const items = itemsOf(body.input)
  if (items === null) return missing("input")
  const last = items.at(-1)
  const instructed = typeof instructions === "string" ? instructions.length : 0
  return {
    model,
    stream: body.stream === true,
    messageCount: items.length,
    promptLength: items.reduce((sum, item) => sum + textOf(item).length, instructed),
    lastRole: last === undefined ? "" : roleOf(last),
    lastText: last === undefined ? "" : textOf(last),
    lastUserText: textOf(items.findLast((item) => roleOf(item) === "user") ?? {}),
    tools: Array.isArray(body.tools) ? body.tools.flatMap((tool) => toolFrom(tool, "parameters")) : [],
    toolChoice: choiceOf(body.tool_choice),
    body,
  }
}

/** Plain text stands for one message of the user's. */
function itemsOf(input: unknown): readonly Item[] | null {
  if (typeof input === "string") return [{ role: "user", content: input }]
  return Array.isArray(input) && input.every(isObject) ? input : null
}

function roleOf(item: Item): string {
  if (item.type === "function_call_output") return "tool"
  return typeof item.role === "string" ? item.role : ""
}

function textOf(item: Item): string {
  return contentText(item.type === "function_call_output" ? item.output : item.content)
}

function choiceOf(choice: unknown): string {
  if (typeof choice === "string") return choice
  return isObject(choice) && typeof choice.name === "string" ? choice.name : "auto"
}
