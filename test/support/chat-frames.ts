import { joinBytes, textOf, utf8 } from "../../src/lib/bytes.ts"
import { ChatTap } from "../../src/relay/taps/chat.ts"

const noBytes = new Uint8Array(0)

interface ChunkFields {
  readonly [name: string]: unknown
}

/** A frame of a stream with the id `chatcmpl-1`; other fields as given. */
export function frame(fields: ChunkFields): string {
  return `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", ...fields })}\n\n`
}

export const delta = (fields: ChunkFields, index = 0) =>
  frame({ choices: [{ index, delta: fields, finish_reason: null }] })
export const finish = (reason = "stop", index = 0) => frame({ choices: [{ index, delta: {}, finish_reason: reason }] })
export const tokens = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 }
export const usageFrame = frame({ choices: [], usage: tokens })
export const role = delta({ role: "assistant", content: "" })
export const done = "data: [DONE]\n\n"

export interface Told {
  readonly tap: ChatTap
  /** Everything that went on while the stream ran, without the closing frames. */
  readonly passed: string
}

export function read(pieces: readonly (string | Uint8Array)[], ending: "ended" | "running" = "running"): Told {
  const tap = new ChatTap()
  const passed = pieces.map((piece) => tap.push(typeof piece === "string" ? utf8(piece) : piece))
  if (ending === "ended") passed.push(tap.end())
  return { tap, passed: textOf(joinBytes([noBytes, ...passed.filter((part) => part !== null)])) }
}
