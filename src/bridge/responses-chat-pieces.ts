import { isObject, type JsonObject, type JsonValue } from "../core/json.ts"
import type { Field } from "./fields.ts"
import type { CallFragment } from "./responses-calls.ts"
import { listOf, textOf } from "./responses-fields.ts"

/** What a chat delta, or a whole chat message, adds to the answer. */
export interface ChatPieces {
  readonly reasoning: string
  readonly text: string
  readonly refusal: string
  readonly calls: readonly CallFragment[]
  readonly logprobs: readonly JsonValue[]
}

/** Reads one choice of a chunk or of a whole answer; null when there is nothing in it to read. */
export function readPieces(choice: JsonObject): ChatPieces | null {
  const isDelta = isObject(choice.delta)
  const said = isDelta ? choice.delta : choice.message
  if (!isObject(said)) return null
  return {
    reasoning: textOf(said.reasoning_content) || textOf(said.reasoning) || partsText(said.content, "thinking"),
    text: textOf(said.content) || partsText(said.content, "text"),
    refusal: textOf(said.refusal),
    calls: readCalls(said, isDelta),
    logprobs: isObject(choice.logprobs) ? readLogprobs(choice.logprobs.content) : [],
  }
}

/** What was produced, for counting: in the order of streams, so that a whole answer counts as much as a streamed one. */
export function producedText(pieces: ChatPieces): string {
  const calls = pieces.calls.map((call) => call.name + call.arguments).join("")
  return pieces.reasoning + pieces.text + pieces.refusal + calls
}

/** The text of content that comes in parts; `thinking` parts hold text parts of their own. */
function partsText(content: Field, type: "text" | "thinking"): string {
  return listOf(content)
    .map((part) => {
      if (!isObject(part) || part.type !== type) return ""
      return (
        textOf(part[type]) ||
        listOf(part[type])
          .map((inner) => (isObject(inner) ? textOf(inner.text) : ""))
          .join("")
      )
    })
    .join("")
}

function readCalls(said: JsonObject, isDelta: boolean): readonly CallFragment[] {
  const calls = listOf(said.tool_calls).map((call, place) => {
    const { index, id, function: called } = isObject(call) ? call : {}
    // In a whole message each entry is a call of its own, whatever its id says.
    const order = isDelta ? (Number.isSafeInteger(index) ? Number(index) : null) : place
    return readCall(order, id, called)
  })
  return isObject(said.function_call) ? [...calls, readCall(0, "", said.function_call)] : calls
}

function readCall(index: number | null, id: Field, called: Field): CallFragment {
  const { name, arguments: given } = isObject(called) ? called : {}
  return {
    index,
    id: textOf(id),
    name: textOf(name),
    arguments: isObject(given) ? JSON.stringify(given) : textOf(given),
  }
}

/** Chat completions allow `bytes: null`; responses do not. */
function readLogprobs(tokens: Field): readonly JsonValue[] {
  return listOf(tokens).flatMap((token) => {
    if (!isObject(token)) return []
    const alternatives = listOf(token.top_logprobs).filter((other) => isObject(other))
    return [{ ...token, bytes: listOf(token.bytes), top_logprobs: alternatives.map(withBytes) }]
  })
}

function withBytes(token: JsonObject): JsonObject {
  return { ...token, bytes: listOf(token.bytes) }
}
