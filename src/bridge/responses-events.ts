import { isObject, type JsonObject, type JsonValue } from "../core/json.ts"
import { type Field, isAbsent } from "./fields.ts"
import { listOf, textOf } from "./responses-fields.ts"
import { isPartKind, type PartKind, type PartPlace, partOf, partText, ResponseFrames } from "./responses-frames.ts"

/** The last event by the response's status. One that is still running is told as it is: nothing was completed. */
const lastEvents: Readonly<Record<string, string>> = {
  completed: "response.completed",
  incomplete: "response.incomplete",
  failed: "response.failed",
  cancelled: "response.failed",
  queued: "response.queued",
  in_progress: "response.in_progress",
}

/** The events of a whole response, for an upstream that answered JSON where a stream was asked for. */
export function responseEvents(response: JsonObject): string {
  const frames = new ResponseFrames()
  const begun = atItsStart(response)
  frames.event("response.created", { response: begun })
  frames.event("response.in_progress", { response: begun })
  for (const [index, item] of listOf(response.output).entries()) {
    if (isObject(item)) writeItem(frames, index, item)
  }
  frames.event(lastEvent(response), { response })
  return frames.take()
}

function atItsStart(response: JsonObject): JsonObject {
  const start: Record<string, JsonValue | undefined> = {
    ...response,
    status: "in_progress",
    error: null,
    incomplete_details: null,
    output: [],
    usage: null,
  }
  if (response.completed_at !== undefined) start.completed_at = null
  if (response.output_text !== undefined) start.output_text = ""
  return start
}

function lastEvent(response: JsonObject): string {
  const told = typeof response.status === "string" ? lastEvents[response.status] : undefined
  if (told !== undefined) return told
  if (isObject(response.error)) return "response.failed"
  return isObject(response.incomplete_details) ? "response.incomplete" : "response.completed"
}

function writeItem(frames: ResponseFrames, index: number, item: JsonObject): void {
  const id = typeof item.id === "string" ? item.id : ""
  // Deltas point to their item by its id; without one, or with parts of another kind, it can only be delivered whole.
  if (id === "") frames.itemAdded(index, item)
  else if (item.type === "function_call") writeCall(frames, index, item, id)
  else if (item.type === "message" && holdsOnly(item.content, messageParts)) writeMessage(frames, index, item, id)
  else if (item.type === "reasoning" && isReadableReasoning(item)) writeReasoning(frames, index, item, id)
  else frames.itemAdded(index, item)
  frames.itemDone(index, item)
}

const messageParts: readonly unknown[] = ["output_text", "refusal"] satisfies PartKind[]
const summaryParts: readonly unknown[] = ["summary_text"] satisfies PartKind[]
const reasoningParts: readonly unknown[] = ["reasoning_text"] satisfies PartKind[]

function holdsOnly(parts: Field, kinds: readonly unknown[]): boolean {
  return Array.isArray(parts) && listOf(parts).every((part) => isObject(part) && kinds.includes(part.type))
}

function isReadableReasoning(item: JsonObject): boolean {
  return holdsOnly(item.summary, summaryParts) && (isAbsent(item.content) || holdsOnly(item.content, reasoningParts))
}

function writeMessage(frames: ResponseFrames, index: number, item: JsonObject, id: string): void {
  frames.itemAdded(index, { ...item, status: "in_progress", content: [] })
  writeParts(frames, index, id, item.content)
}

function writeReasoning(frames: ResponseFrames, index: number, item: JsonObject, id: string): void {
  frames.itemAdded(index, {
    ...item,
    summary: [],
    ...(isAbsent(item.status) ? {} : { status: "in_progress" }),
    ...(isAbsent(item.content) ? {} : { content: [] }),
  })
  writeParts(frames, index, id, item.summary)
  writeParts(frames, index, id, item.content)
}

function writeCall(frames: ResponseFrames, index: number, item: JsonObject, id: string): void {
  const text = textOf(item.arguments)
  frames.itemAdded(index, { ...item, status: "in_progress", arguments: "" })
  if (text !== "") frames.argumentsDelta(id, index, text)
  frames.argumentsDone(id, index, item)
}

function writeParts(frames: ResponseFrames, outputIndex: number, itemId: string, parts: Field): void {
  for (const [partIndex, part] of listOf(parts).entries()) {
    if (isObject(part) && isPartKind(part.type)) writePart(frames, { itemId, outputIndex, partIndex }, part.type, part)
  }
}

function writePart(frames: ResponseFrames, place: PartPlace, kind: PartKind, part: JsonObject): void {
  const text = partText(kind, part)
  frames.partAdded(kind, place, partOf(kind, "", []))
  if (text !== "") frames.partDelta(kind, place, text, listOf(part.logprobs))
  if (kind === "output_text") writeAnnotations(frames, place, part)
  frames.partDone(kind, place, part)
}

function writeAnnotations(frames: ResponseFrames, place: PartPlace, part: JsonObject): void {
  for (const [index, annotation] of listOf(part.annotations).entries()) {
    frames.event("response.output_text.annotation.added", {
      item_id: place.itemId,
      output_index: place.outputIndex,
      content_index: place.partIndex,
      annotation_index: index,
      annotation,
    })
  }
}
