import { expect } from "bun:test"
import { type Answer, dataOf } from "./scene.ts"
import { type ChatChunk, chunksOf, usageChunksOf } from "./sse-events.ts"

/** What a chat answer says, put together. */
export interface Said {
  readonly role: string | undefined
  readonly content: string
  readonly reasoning: string
  readonly calls: readonly { id: string; type: string; name: string; arguments: string }[]
  readonly finish: readonly string[]
  readonly usage: unknown
}

interface Delta {
  readonly role?: string
  readonly content?: string | null
  readonly reasoning_content?: string
  readonly tool_calls?: readonly {
    index: number
    id?: string
    type?: string
    function: { name?: string; arguments: string }
  }[]
}

/** An answer of either mode, as a client puts it together. */
export function readSaid(answer: Answer, stream: boolean): Said {
  expect(answer.status).toBe(200)
  if (!stream) {
    const body = JSON.parse(answer.text)
    const { role, content, reasoning_content: reasoning, tool_calls: calls = [] } = body.choices[0].message
    return {
      role,
      content: content ?? "",
      reasoning: reasoning ?? "",
      calls: calls.map((call: { id: string; type: string; function: object }) => ({
        id: call.id,
        type: call.type,
        ...call.function,
      })),
      finish: [body.choices[0].finish_reason],
      usage: body.usage,
    }
  }
  expect(dataOf(answer.text).at(-1)).toBe("[DONE]")
  expect(answer.text).toEndWith("data: [DONE]\n\n")
  const chunks = chunksOf(answer.text)
  // Exactly once, directly before the end.
  expect(usageChunksOf(answer.text)).toEqual([chunks.at(-1)!])
  expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
  return { ...together(chunks), usage: chunks.at(-1)!.usage }
}

/** The chunks of a stream, put together. */
export function together(chunks: readonly ChatChunk[]): Omit<Said, "usage"> {
  const choices = chunks.flatMap((each) => each.choices ?? []) as { delta: Delta; finish_reason: string | null }[]
  const calls: Said["calls"][number][] = []
  for (const { delta } of choices) {
    for (const { index, id, type, function: called } of delta.tool_calls ?? []) {
      const known = calls[index] ?? { id: "", type: "", name: "", arguments: "" }
      calls[index] = {
        id: known.id + (id ?? ""),
        type: known.type + (type ?? ""),
        name: known.name + (called.name ?? ""),
        arguments: known.arguments + called.arguments,
      }
    }
  }
  return {
    role: choices[0]?.delta.role,
    content: choices.map(({ delta }) => delta.content ?? "").join(""),
    reasoning: choices.map(({ delta }) => delta.reasoning_content ?? "").join(""),
    calls,
    finish: choices.flatMap(({ finish_reason }) => finish_reason ?? []),
  }
}
