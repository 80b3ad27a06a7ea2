import { isObject, type JsonObject, type JsonValue } from "../core/json.ts"
import { contentBlocks, isBlank, textBlocks } from "./chat-to-messages-content.ts"
import { toolUseIdFor } from "./chat-to-messages-ids.ts"
import { fillerBlock, pairResults, type Turn } from "./chat-to-messages-pairing.ts"
import { type Field, isAbsent, listAt, nameAt, objectAt, refuse, stringAt } from "./fields.ts"

export interface History {
  /** What the system and developer messages said, in order. */
  readonly system: readonly string[]
  readonly turns: readonly Turn[]
}

interface Reading {
  readonly system: string[]
  readonly turns: { readonly role: Turn["role"]; readonly blocks: JsonObject[] }[]
  /** Ids given to calls of the legacy form, which knows its functions by name only. */
  readonly functionIds: Map<string, string>
  functionCalls: number
}

/** Reads a chat conversation into the vendor's: system text apart, roles alternating, a user's turn first. */
export function readHistory(messages: Field): History {
  const list = listAt(messages, "messages", "must be a non-empty array")
  if (list.length === 0) return refuse("messages", "must be a non-empty array")
  const reading: Reading = { system: [], turns: [], functionIds: new Map(), functionCalls: 0 }
  for (const [index, message] of list.entries()) {
    readMessage(objectAt(message, `messages[${index}]`), `messages[${index}]`, reading)
  }
  if (reading.turns[0]?.role !== "user") reading.turns.unshift({ role: "user", blocks: [fillerBlock] })
  return { system: reading.system, turns: withoutTrailingSpace(pairResults(reading.turns)) }
}

function readMessage(message: JsonObject, place: string, reading: Reading): void {
  const content = contentBlocks(message.content, `${place}.content`)
  switch (message.role) {
    case "system":
    case "developer":
      reading.system.push(...systemTexts(content, `${place}.content`))
      break
    case "user":
      append(reading, "user", content)
      break
    case "assistant":
      append(reading, "assistant", [...content, ...refusalBlocks(message), ...callBlocks(message, place, reading)])
      break
    case "tool": {
      const id = toolUseIdFor(nameAt(message.tool_call_id, `${place}.tool_call_id`))
      append(reading, "user", [resultBlock(id, message.content, content)])
      break
    }
    case "function": {
      const id = reading.functionIds.get(nameAt(message.name, `${place}.name`)) ?? ""
      append(reading, "user", [resultBlock(id, message.content, content)])
      break
    }
    default:
      refuse(`${place}.role`, `${JSON.stringify(message.role)} is none of system, developer, user, assistant, tool`)
  }
}

function append(reading: Reading, role: Turn["role"], blocks: readonly JsonObject[]): void {
  if (blocks.length === 0) return
  const last = reading.turns.at(-1)
  if (last?.role === role) last.blocks.push(...blocks)
  else reading.turns.push({ role, blocks: [...blocks] })
}

function systemTexts(blocks: readonly JsonObject[], place: string): readonly string[] {
  return blocks.map(({ text }) => (typeof text === "string" ? text : refuse(place, "can hold text only")))
}

function refusalBlocks(message: JsonObject): readonly JsonObject[] {
  return typeof message.refusal === "string" ? textBlocks(message.refusal) : []
}

function callBlocks(message: JsonObject, place: string, reading: Reading): readonly JsonObject[] {
  const blocks: JsonObject[] = []
  if (!isAbsent(message.tool_calls)) {
    for (const [index, entry] of listAt(message.tool_calls, `${place}.tool_calls`).entries()) {
      const at = `${place}.tool_calls[${index}]`
      const call = objectAt(entry, at)
      if (!isAbsent(call.type) && call.type !== "function") {
        return refuse(`${at}.type`, `calls of the type ${JSON.stringify(call.type)} cannot be sent to this model`)
      }
      blocks.push(callBlock(toolUseIdFor(nameAt(call.id, `${at}.id`)), call.function, `${at}.function`))
    }
  }
  if (!isAbsent(message.function_call)) {
    const id = `function_call_${reading.functionCalls++}`
    const block = callBlock(id, message.function_call, `${place}.function_call`)
    reading.functionIds.set(String(block.name), id)
    blocks.push(block)
  }
  return blocks
}

function callBlock(id: string, called: Field, place: string): JsonObject {
  const { name, arguments: given } = objectAt(called, place)
  return { type: "tool_use", id, name: nameAt(name, `${place}.name`), input: callInput(given, `${place}.arguments`) }
}

function callInput(given: Field, place: string): JsonObject {
  if (isAbsent(given)) return {}
  if (isObject(given)) return given
  const text = stringAt(given, place)
  if (isBlank(text)) return {}
  let input: JsonValue
  try {
    input = JSON.parse(text)
  } catch {
    return refuse(place, "is not valid JSON")
  }
  return isObject(input) ? input : refuse(place, "must be the text of a JSON object")
}

/** Text stays a plain string; parts become blocks, images included. */
function resultBlock(id: string, content: Field, blocks: readonly JsonObject[]): JsonObject {
  const given = typeof content === "string" ? content : blocks
  return { type: "tool_result", tool_use_id: id, content: blocks.length === 0 ? undefined : given }
}

/** The vendor refuses a conversation that ends in an answer with trailing space. */
function withoutTrailingSpace(turns: readonly Turn[]): readonly Turn[] {
  const last = turns.at(-1)
  const block = last?.blocks.at(-1)
  if (last?.role !== "assistant" || typeof block?.text !== "string") return turns
  const blocks = [...last.blocks.slice(0, -1), { ...block, text: block.text.trimEnd() }]
  return [...turns.slice(0, -1), { ...last, blocks }]
}
