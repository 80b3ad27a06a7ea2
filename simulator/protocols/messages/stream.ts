import type { BehaviourOf } from "../../behaviour.ts"
import { type EventData, firstOf, namedEvent, type StreamEvent } from "../event-stream.ts"
import { inPieces, spoken, words } from "../model-voice.ts"
import { type Answer, type ContentBlock, messageBody } from "./answer.ts"
import { errorData, usualErrorType } from "./errors.ts"

const argumentPieces = 3

type Step = BehaviourOf<"messages">

export const pingEvent = namedEvent({ type: "ping" })

/** The events of a streamed answer. */
export function* messageEvents(answer: Answer, step: Step): Generator<StreamEvent> {
  let isFirst = true
  for (const data of dataOf(answer, step)) {
    const content = isFirst && (data.type === "content_block_delta" || data.type === "message_delta")
    if (content) isFirst = false
    yield { text: namedEvent(data), content }
  }
}

function* dataOf(answer: Answer, step: Step): Generator<EventData> {
  const course = courseOf(answer, step)
  yield* step.endAfterEvents === undefined ? course : firstOf(course, step.endAfterEvents)
  if (step.ending === "error") yield { ...errorData(step.error?.code ?? usualErrorType, step.error?.message) }
  else if (step.ending !== "none") yield { type: "message_stop" }
}

function* courseOf(answer: Answer, step: Step): Generator<EventData> {
  yield { type: "message_start", message: messageBody(begun(answer)) }
  for (const [index, block] of answer.blocks.entries()) {
    yield { type: "content_block_start", index, content_block: emptyBlock(block) }
    if (index === 0 && step.ping !== false) yield { type: "ping" }
    for (const delta of deltasOf(block, step.chunks)) yield { type: "content_block_delta", index, delta }
    yield { type: "content_block_stop", index }
  }
  if (step.ending !== "error") yield messageDelta(answer)
}

/** The vendor knows the input from the start, and has counted one token of the output. */
function begun(answer: Answer): Answer {
  const usage = answer.usage === undefined ? undefined : { ...answer.usage, output_tokens: 1 }
  return { ...answer, blocks: [], stopReason: null, stopSequence: null, usage }
}

function messageDelta({ stopReason, stopSequence, totals: usage }: Answer): EventData {
  const delta = { stop_reason: stopReason, stop_sequence: stopSequence }
  return { type: "message_delta", delta, usage }
}

function emptyBlock(block: ContentBlock): object {
  switch (block.type) {
    case "thinking":
      return { type: "thinking", thinking: "", signature: "" }
    case "text":
      return { type: "text", text: "" }
    case "tool_use":
      return { type: "tool_use", id: block.call.id, name: block.call.name, input: {} }
  }
}

function* deltasOf(block: ContentBlock, chunks: number | undefined): Generator<object> {
  switch (block.type) {
    case "thinking":
      for (const thinking of words(block.thinking)) yield { type: "thinking_delta", thinking }
      return yield { type: "signature_delta", signature: block.signature }
    case "text":
      for (const text of spoken(block.text, chunks)) yield { type: "text_delta", text }
      return
    case "tool_use":
      // The real vendor begins with an empty piece.
      for (const piece of ["", ...inPieces(block.call.arguments, argumentPieces)]) {
        yield { type: "input_json_delta", partial_json: piece }
      }
  }
}
