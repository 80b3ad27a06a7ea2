import type { BehaviourOf } from "./behaviour.ts"
import { type CompletionFacts, completion, factsOf } from "./protocols/chat-answer.ts"
import { chunkEvent, eventStreamHeaders, finishEvents } from "./protocols/chat-stream.ts"
import type { VendorRequest } from "./protocols/protocol.ts"
import type { Piece, Reply } from "./wire/reply.ts"

const megabyte = 1024 * 1024
/** Text of one piece; a multiple of it is generated, so that no big answer stands in memory. */
const blockBytes = 64 * 1024
const block = Buffer.alloc(blockBytes, "All work and no play makes a dull model. ")
/** The event loop turns after this many, or a reader as fast as the writer would starve everyone else. */
const blocksPerTurn = 16
const blockText = block.toString("latin1")

/** A valid chat answer of about the size told; each piece is made when the one before has left. */
export function bigReply(request: VendorRequest, step: BehaviourOf<"big">): Reply {
  const blocks = Math.max(1, Math.round((step.megabytes * megabyte) / blockBytes))
  const facts = factsOf(request)
  return step.stream ? bigStream(facts, blocks) : bigCompletion(facts, blocks)
}

function bigCompletion(facts: CompletionFacts, blocks: number): Reply {
  const marker = "@big@"
  const text = JSON.stringify(completion(facts, { text: marker, usage: usageOf(blocks) }))
  const [before = "", after = ""] = text.split(marker)
  return {
    status: 200,
    headers: [["content-type", "application/json"]],
    framing: "content-length",
    length: Buffer.byteLength(before) + blocks * blockBytes + Buffer.byteLength(after),
    pieces: wrapped(Buffer.from(before), blocks, Buffer.from(after)),
  }
}

function* wrapped(before: Uint8Array, blocks: number, after: Uint8Array): Generator<Piece> {
  yield { bytes: before }
  for (let sent = 0; sent < blocks; sent++) yield paced(block, sent)
  yield { bytes: after }
}

function bigStream(facts: CompletionFacts, blocks: number): Reply {
  return { status: 200, headers: eventStreamHeaders, framing: "chunked", pieces: bigEvents(facts, blocks) }
}

function* bigEvents(facts: CompletionFacts, blocks: number): Generator<Piece> {
  const event = Buffer.from(chunkEvent(facts, { content: blockText }))
  for (let sent = 0; sent < blocks; sent++) yield paced(event, sent)
  yield { bytes: Buffer.from(finishEvents(facts, usageOf(blocks))) }
}

function paced(bytes: Uint8Array, sent: number): Piece {
  return sent % blocksPerTurn === 0 ? { bytes, afterMs: 0 } : { bytes }
}

function usageOf(blocks: number): Record<string, number> {
  const completionTokens = (blocks * blockBytes) / 4
  return { prompt_tokens: 10, completion_tokens: completionTokens, total_tokens: completionTokens + 10 }
}
