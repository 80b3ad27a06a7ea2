import type { BehaviourOf } from "./behaviour.ts"
import { blockBytes, blocksIn, repeated } from "./bulk.ts"
import { type CompletionFacts, completion, factsOf } from "./protocols/chat-answer.ts"
import { chunkEvent, finishEvents } from "./protocols/chat-stream.ts"
import { eventStreamHeaders } from "./protocols/event-stream.ts"
import type { VendorRequest } from "./protocols/protocol.ts"
import type { Piece, Reply } from "./wire/reply.ts"

const block = Buffer.alloc(blockBytes, "All work and no play makes a dull model. ")
const blockText = block.toString("latin1")

/** A valid chat answer of about the size told; each piece is made when the one before has left. */
export function bigReply(request: VendorRequest, step: BehaviourOf<"big">): Reply {
  const blocks = blocksIn(step.megabytes)
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
  yield* repeated(block, blocks)
  yield { bytes: after }
}

function bigStream(facts: CompletionFacts, blocks: number): Reply {
  return { status: 200, headers: eventStreamHeaders, framing: "chunked", pieces: bigEvents(facts, blocks) }
}

function* bigEvents(facts: CompletionFacts, blocks: number): Generator<Piece> {
  const event = Buffer.from(chunkEvent(facts, { content: blockText }))
  yield* repeated(event, blocks)
  yield { bytes: Buffer.from(finishEvents(facts, usageOf(blocks))) }
}

function usageOf(blocks: number): Record<string, number> {
  const completionTokens = (blocks * blockBytes) / 4
  return { prompt_tokens: 10, completion_tokens: completionTokens, total_tokens: completionTokens + 10 }
}
