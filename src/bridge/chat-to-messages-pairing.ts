import type { JsonObject, JsonValue } from "../core/json.ts"
import { textBlocks } from "./chat-to-messages-content.ts"

/** One turn of the conversation as the vendor counts them: roles alternate. */
export interface Turn {
  readonly role: "user" | "assistant"
  readonly blocks: readonly JsonObject[]
}

/** A call that the next user turn must answer: the id the caller knows it by, and the one it is sent with. */
interface OpenCall {
  readonly id: JsonValue | undefined
  readonly sentId: string
}

/** What stands in for a result that the caller left out; the vendor refuses a call without one. */
const missingResult = "[no result]"

/** Stands where the vendor demands a turn and the caller gave none. */
export const fillerBlock: JsonObject = { type: "text", text: "." }

/**
 * Makes each turn with calls be followed by a user turn that answers each of them once, in their order and before all else,
 * as the vendor demands. A result without its call becomes plain content.
 */
export function pairResults(turns: readonly Turn[]): readonly Turn[] {
  const paired: Turn[] = []
  const usedIds = new Set<string>()
  let open: readonly OpenCall[] = []
  for (const turn of turns) {
    if (turn.role === "user") {
      paired.push({ role: "user", blocks: answered(open, turn.blocks) })
      open = []
    } else {
      const calls = turn.blocks.filter(isCall).map((call) => openCall(call, usedIds))
      open = calls
      let next = 0
      const blocks = turn.blocks.map((block) => (isCall(block) ? { ...block, id: calls[next++]!.sentId } : block))
      paired.push({ role: "assistant", blocks })
    }
  }
  if (open.length > 0) paired.push({ role: "user", blocks: answered(open, []) })
  return paired
}

function isCall(block: JsonObject): boolean {
  return block.type === "tool_use"
}

/** Upstreams that number their calls from zero in each turn leave the same id more than once in a conversation. */
function openCall(call: JsonObject, usedIds: Set<string>): OpenCall {
  const id = String(call.id)
  let sentId = id
  for (let copy = 2; usedIds.has(sentId); copy++) sentId = `${id}_${copy}`
  usedIds.add(sentId)
  return { id, sentId }
}

function answered(open: readonly OpenCall[], blocks: readonly JsonObject[]): readonly JsonObject[] {
  const results = new Map<JsonValue | undefined, JsonObject>()
  // A later result for the same call replaces the earlier one.
  for (const block of blocks) if (block.type === "tool_result") results.set(block.tool_use_id, block)
  const answers = open.map(({ id, sentId }) => {
    const result = results.get(id) ?? { type: "tool_result", content: missingResult }
    return { ...result, tool_use_id: sentId }
  })
  const known = new Set(open.map(({ id }) => id))
  const rest = blocks.flatMap((block) => {
    if (block.type !== "tool_result") return [block]
    return known.has(block.tool_use_id) ? [] : plainContent(block.content)
  })
  const all = [...answers, ...rest]
  return all.length === 0 ? [fillerBlock] : all
}

function plainContent(content: JsonValue | undefined): readonly JsonObject[] {
  if (typeof content === "string") return textBlocks(content)
  return Array.isArray(content) ? (content as readonly JsonObject[]) : []
}
