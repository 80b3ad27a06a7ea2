import { isObject, type JsonObject, type JsonValue } from "../core/json.ts"
import { type Field, isAbsent, listAt, nameAt, objectAt, refuse, shown } from "./fields.ts"
import { blockParts, contentOf, flatText, textParts, toolAnswer } from "./messages-to-chat-content.ts"
import { type ToolNames, thinkingMarker } from "./messages-to-chat-parts.ts"
import type { ChatTastes } from "./messages-to-chat-settings.ts"
import { joinNeighbours, systemText } from "./messages-to-chat-system.ts"
import { textOf } from "./responses-fields.ts"

interface Turn {
  readonly role: "user" | "assistant" | "system"
  readonly blocks: readonly JsonObject[]
  readonly place: string
}

/** An assistant's turn, none at the start, and all that stands before the next one: the answers to its calls are in there. */
interface Round {
  readonly assistant: Turn | null
  readonly replies: readonly Turn[]
}

interface Call {
  /** The id that results know it by, and the one it is sent with. */
  readonly id: string
  readonly sentId: string
  readonly block: JsonObject
  readonly place: string
}

interface Result {
  readonly block: JsonObject
  readonly text: string
  readonly media: readonly JsonObject[]
}

/** What stands in for a result that the caller left out; upstreams refuse a call without one. */
const missingResult = "[no result]"

/** The chat messages for `system` and `messages`. Each call is followed directly by its result, as upstreams demand. */
export function chatMessages(asked: JsonObject, tastes: ChatTastes, names: ToolNames): readonly JsonObject[] {
  const list = listAt(asked.messages, "messages", "must be a non-empty array")
  const turns = list.map(readTurn)
  const spoken = rounds(turns).flatMap((round) => roundMessages(round, tastes, names))
  if (!spoken.some(({ role }) => role !== "system")) refuse("messages", "must hold at least one message with content")
  const merging = tastes.midSystem === "merge"
  const opening = [systemText(asked.system, "system"), ...(merging ? spoken.filter(isSystem).map(contentText) : [])]
    .filter((text) => text !== "")
    .map((content) => ({ role: "system", content }))
  const messages = [...opening, ...(merging ? spoken.filter((message) => !isSystem(message)) : spoken)]
  return joinNeighbours(messages, tastes.midSystem === "user" ? ["system", "user"] : ["system"])
}

function isSystem({ role }: JsonObject): boolean {
  return role === "system"
}

function contentText({ content }: JsonObject): string {
  return textOf(content)
}

function readTurn(field: JsonValue, index: number): Turn {
  const place = `messages[${index}]`
  const { role, content } = objectAt(field, place)
  if (role !== "user" && role !== "assistant" && role !== "system") {
    return refuse(`${place}.role`, `must be "user", "assistant" or "system", not ${shown(role)}`)
  }
  return { role, blocks: readBlocks(content, `${place}.content`), place }
}

function readBlocks(content: Field, place: string): readonly JsonObject[] {
  if (isAbsent(content)) return []
  if (typeof content === "string") return [{ type: "text", text: content }]
  return listAt(content, place, "must be a string or an array of blocks").map((block, index) =>
    objectAt(block, `${place}[${index}]`),
  )
}

function rounds(turns: readonly Turn[]): readonly Round[] {
  const found: { assistant: Turn | null; replies: Turn[] }[] = [{ assistant: null, replies: [] }]
  for (const turn of turns) {
    const last = found.at(-1)!
    if (turn.role !== "assistant") last.replies.push(turn)
    // A turn with calls that goes on in another message is one turn: the results come after both.
    else if (last.replies.length === 0 && last.assistant?.blocks.some(isCall)) {
      last.assistant = { ...last.assistant, blocks: [...last.assistant.blocks, ...turn.blocks] }
    } else found.push({ assistant: turn, replies: [] })
  }
  return found
}

function roundMessages({ assistant, replies }: Round, tastes: ChatTastes, names: ToolNames): readonly JsonObject[] {
  const calls = assistant === null ? [] : readCalls(assistant)
  const results = readResults(replies, new Set(calls.map(({ id }) => id)), tastes.pdf)
  return [
    ...(assistant === null ? [] : assistantMessage(assistant.blocks, calls, tastes, names)),
    ...calls.map(({ id, sentId }) => {
      return { role: "tool", tool_call_id: sentId, content: results.get(id)?.text ?? missingResult }
    }),
    ...replies.flatMap((reply) => replyMessage(reply, results, tastes)),
  ]
}

function isCall({ type }: JsonObject): boolean {
  return type === "tool_use"
}

function readCalls({ blocks, place }: Turn): readonly Call[] {
  const sentIds = new Set<string>()
  return blocks.filter(isCall).map((block) => {
    const id = nameAt(block.id, `${place}: the id of a tool_use`)
    let sentId = id
    for (let copy = 2; sentIds.has(sentId); copy += 1) sentId = `${id}_${copy}`
    sentIds.add(sentId)
    return { id, sentId, block, place }
  })
}

/** The results of the calls known; a later one for the same call replaces the earlier. */
function readResults(replies: readonly Turn[], known: ReadonlySet<string>, pdf: boolean): ReadonlyMap<Field, Result> {
  const blocks = replies.filter(({ role }) => role === "user").flatMap((reply) => reply.blocks)
  const last = new Map<Field, JsonObject>()
  for (const block of blocks)
    if (isResult(block) && known.has(textOf(block.tool_use_id))) last.set(block.tool_use_id, block)
  return new Map([...last].map(([id, block]) => [id, { block, ...toolAnswer(block, pdf) }]))
}

function isResult({ type }: JsonObject): boolean {
  return type === "tool_result"
}

function assistantMessage(
  blocks: readonly JsonObject[],
  calls: readonly Call[],
  { reasoningReplay }: ChatTastes,
  names: ToolNames,
): readonly JsonObject[] {
  const text = blocks.map(assistantText).join("")
  if (text === "" && calls.length === 0) return []
  const reasoning = reasoningReplay ? blocks.map(ownReasoning).join("") : ""
  return [
    {
      role: "assistant",
      content: text === "" ? null : text,
      ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
      ...(calls.length === 0 ? {} : { tool_calls: calls.map((call) => chatCall(call, names)) }),
    },
  ]
}

/** Tools that the vendor of messages ran by itself are told in words, call and result alike: upstreams know no such calls. */
function assistantText(block: JsonObject): string {
  switch (block.type) {
    case "text":
      return textOf(block.text)
    case "tool_use":
    case "thinking":
    case "redacted_thinking":
      return ""
    case "server_tool_use":
    case "mcp_tool_use":
      return `\n[${textOf(block.name)} ${JSON.stringify(block.input ?? {})}]\n`
    default: {
      const words = flatText(block)
      return words === "" ? "" : `\n${words}\n`
    }
  }
}

function ownReasoning(block: JsonObject): string {
  return block.type === "thinking" && block.signature === thinkingMarker ? textOf(block.thinking) : ""
}

function chatCall({ sentId, block, place }: Call, names: ToolNames): JsonObject {
  const name = names.toUpstream(nameAt(block.name, `${place}: the name of a tool_use`))
  return { id: sentId, type: "function", function: { name, arguments: callArguments(block.input) } }
}

function callArguments(input: Field): string {
  if (isObject(input)) return JSON.stringify(input)
  try {
    return isObject(JSON.parse(textOf(input))) ? textOf(input) : "{}"
  } catch {
    return "{}"
  }
}

/** What is left of a reply when the results that became tool messages are taken out; their images stay. */
function replyMessage(
  { role, blocks }: Turn,
  results: ReadonlyMap<Field, Result>,
  tastes: ChatTastes,
): readonly JsonObject[] {
  if (role === "system") {
    const content = systemText(blocks, "")
    return content === "" ? [] : [{ role: tastes.midSystem === "user" ? "user" : "system", content }]
  }
  const parts = blocks.flatMap((block) => {
    if (!isResult(block)) return blockParts(block, tastes.pdf)
    const result = results.get(block.tool_use_id)
    if (result === undefined) return strayResult(block, tastes.pdf)
    return result.block === block ? result.media : []
  })
  return parts.length === 0 ? [] : [{ role: "user", content: contentOf(parts) }]
}

/** A result without its call is refused by upstreams, so what it says goes as the user's words. */
function strayResult(block: JsonObject, pdf: boolean): readonly JsonObject[] {
  const { text, media } = toolAnswer(block, pdf)
  return [...textParts(text), ...media]
}
