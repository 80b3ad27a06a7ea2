import type { Endpoint } from "../core/endpoints.ts"
import { isObject } from "../core/json.ts"
import { type Fields, listOf, stringOf } from "./fields.ts"

/** What a whole answer in an endpoint's dialect produced, for counting: the same text that its stream would have brought. */
export function producedBy(endpoint: Endpoint, answer: Fields): string {
  switch (endpoint) {
    case "chat":
      return allOf(answer.choices, ({ message }) => (isObject(message) ? chatText(message) : ""))
    case "responses":
      return allOf(answer.output, responsesItemText)
    case "messages":
      return allOf(answer.content, messagesBlockText)
    default:
      return ""
  }
}

/** What a chat message, or a delta of one, says: reasoning first, as streams have it. */
export function chatText(said: Fields): string {
  const { content } = said
  return (
    // Some vendors give the same reasoning under both names.
    (stringOf(said.reasoning_content) || stringOf(said.reasoning)) +
    (typeof content === "string" ? content : allOf(content, contentPartText)) +
    stringOf(said.refusal) +
    allOf(said.tool_calls, ({ function: called }) => functionText(called)) +
    functionText(said.function_call)
  )
}

/** What a call of a responses item is opened with; its arguments come in deltas of their own. */
export function calledName(item: unknown): string {
  return isObject(item) && callTypes.has(item.type) ? stringOf(item.name) : ""
}

const callTypes: ReadonlySet<unknown> = new Set(["function_call", "custom_tool_call", "mcp_call"])

function responsesItemText(item: Fields): string {
  if (callTypes.has(item.type)) return stringOf(item.name) + stringOf(item.arguments) + stringOf(item.input)
  if (item.type !== "message" && item.type !== "reasoning") return ""
  return allOf(item.summary, ({ text }) => stringOf(text)) + allOf(item.content, contentPartText)
}

function messagesBlockText(block: Fields): string {
  switch (block.type) {
    case "text":
      return stringOf(block.text)
    case "thinking":
      return stringOf(block.thinking)
    case "tool_use":
      return stringOf(block.name) === "" ? "" : block.name + argumentsText(block.input)
    default:
      return ""
  }
}

/** A part of text, refusal or thinking, whose text may come in parts of its own. */
function contentPartText(part: Fields): string {
  const thinking = stringOf(part.thinking) || allOf(part.thinking, ({ text }) => stringOf(text))
  return stringOf(part.text) + stringOf(part.refusal) + thinking
}

function functionText(called: unknown): string {
  if (!isObject(called)) return ""
  const { name, arguments: given } = called
  return stringOf(name) + (isObject(given) ? JSON.stringify(given) : stringOf(given))
}

/** A call without arguments has an empty object, as it is told to callers. */
function argumentsText(input: unknown): string {
  if (typeof input === "string" && input.trim() !== "") return input
  return JSON.stringify(isObject(input) ? input : {})
}

function allOf(list: unknown, textOf: (entry: Fields) => string): string {
  let text = ""
  for (const entry of listOf(list)) if (isObject(entry)) text += textOf(entry)
  return text
}
