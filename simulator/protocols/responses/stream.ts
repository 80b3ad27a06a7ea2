import type { BehaviourOf } from "../../behaviour.ts"
import { type EventData, firstOf, namedEvent, type StreamEvent } from "../event-stream.ts"
import { inPieces, spoken, words } from "../model-voice.ts"
import {
  type Answer,
  itemBody,
  type OutputItem,
  type ResponseFacts,
  responseBody,
  summaryPart,
  textPart,
} from "./answer.ts"
import { endingEvent } from "./ending.ts"

const argumentPieces = 3

/** The events of a streamed answer, numbered as they are sent. */
export function* responseEvents(
  facts: ResponseFacts,
  answer: Answer,
  step: BehaviourOf<"responses">,
): Generator<StreamEvent> {
  let sequence = 0
  let isFirst = true
  for (const data of dataOf(facts, answer, step)) {
    const content = isFirst && !preamble.has(data.type)
    if (content) isFirst = false
    yield { text: namedEvent({ ...data, sequence_number: sequence++ }), content }
  }
}

/** Events that carry nothing of the answer. */
const preamble: ReadonlySet<string> = new Set([
  "response.created",
  "response.in_progress",
  "response.output_item.added",
  "response.content_part.added",
  "response.reasoning_summary_part.added",
])

function* dataOf(facts: ResponseFacts, answer: Answer, step: BehaviourOf<"responses">): Generator<EventData> {
  const course = courseOf(facts, answer, step.chunks)
  yield* step.endAfterEvents === undefined ? course : firstOf(course, step.endAfterEvents)
  yield endingEvent(facts, answer, step)
}

function* courseOf(facts: ResponseFacts, { items }: Answer, chunks: number | undefined): Generator<EventData> {
  yield { type: "response.created", response: responseBody(facts, {}) }
  yield { type: "response.in_progress", response: responseBody(facts, {}) }
  for (const [output_index, item] of items.entries()) {
    yield { type: "response.output_item.added", output_index, item: itemBody(item, "in_progress") }
    yield* inside(item, output_index, chunks)
    yield { type: "response.output_item.done", output_index, item: itemBody(item, "completed") }
  }
}

function* inside(item: OutputItem, output_index: number, chunks: number | undefined): Generator<EventData> {
  const place = { item_id: item.id, output_index }
  switch (item.type) {
    case "reasoning":
      return yield* summaryEvents({ ...place, summary_index: 0 }, item.text)
    case "message":
      return yield* textEvents({ ...place, content_index: 0 }, item.text, chunks)
    case "function_call":
      return yield* argumentEvents(place, item.call.arguments)
  }
}

function* summaryEvents(place: object, text: string): Generator<EventData> {
  yield { type: "response.reasoning_summary_part.added", ...place, part: summaryPart("") }
  for (const delta of words(text)) yield { type: "response.reasoning_summary_text.delta", ...place, delta }
  yield { type: "response.reasoning_summary_text.done", ...place, text }
  yield { type: "response.reasoning_summary_part.done", ...place, part: summaryPart(text) }
}

function* textEvents(place: object, text: string, chunks: number | undefined): Generator<EventData> {
  yield { type: "response.content_part.added", ...place, part: textPart("") }
  for (const delta of spoken(text, chunks)) {
    yield { type: "response.output_text.delta", ...place, delta, logprobs: [] }
  }
  yield { type: "response.output_text.done", ...place, text, logprobs: [] }
  yield { type: "response.content_part.done", ...place, part: textPart(text) }
}

function* argumentEvents(place: object, given: string): Generator<EventData> {
  for (const delta of inPieces(given, argumentPieces)) {
    yield { type: "response.function_call_arguments.delta", ...place, delta }
  }
  yield { type: "response.function_call_arguments.done", ...place, arguments: given }
}
