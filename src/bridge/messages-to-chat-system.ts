import { isObject, type JsonObject } from "../core/json.ts"
import { type Field, isAbsent, listAt } from "./fields.ts"
import { textParts } from "./messages-to-chat-content.ts"
import { listOf, textOf } from "./responses-fields.ts"

/** A block that Claude Code puts first for its vendor's accounting; it means nothing to others and changes, which spoils their prompt caches. */
const attribution = "x-anthropic-billing-header"

/** The text of a system prompt, a string or blocks; "" for none. */
export function systemText(field: Field, place: string): string {
  if (isAbsent(field)) return ""
  if (typeof field === "string") return field
  return listAt(field, place, "must be a string or an array of text blocks")
    .map((block) => (isObject(block) && block.type === "text" ? textOf(block.text) : ""))
    .filter((text) => text !== "" && !text.startsWith(attribution))
    .join("\n\n")
}

/** Makes messages of one of the roles that stand next to each other one message. */
export function joinNeighbours(messages: readonly JsonObject[], roles: readonly string[]): readonly JsonObject[] {
  const joined: JsonObject[] = []
  for (const message of messages) {
    const last = joined.at(-1)
    if (last === undefined || last.role !== message.role || !roles.includes(textOf(message.role))) joined.push(message)
    else joined[joined.length - 1] = { ...last, content: joinedContent(last.content, message.content) }
  }
  return joined
}

function joinedContent(first: Field, second: Field): string | readonly JsonObject[] {
  if (typeof first === "string" && typeof second === "string") return `${first}\n\n${second}`
  return [...partsOf(first), ...partsOf(second)]
}

function partsOf(content: Field): readonly JsonObject[] {
  return typeof content === "string" ? textParts(content) : listOf(content).filter((part) => isObject(part))
}
