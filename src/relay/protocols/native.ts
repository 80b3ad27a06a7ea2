import type { Ask } from "../../admission/ask.ts"
import type { Route } from "../../core/catalog.ts"
import { mebibyte, textOf } from "../../lib/bytes.ts"
import { type Edit, type Field, type JsonShape, spliceBytes } from "../../lib/json-bytes.ts"
import type { Payload } from "../../upstream/client.ts"
import type { BodyOptions } from "../protocol.ts"

/** Bodies above this are sent in pieces, without a copy. */
const largeBytes = mebibyte

/** The caller's bytes with the route's own model name and a few edits put in: nothing else changes. */
export function spliced(ask: Ask, route: Route, edits: readonly Edit[]): Payload {
  const all = route.upstreamModel === ask.model ? [...edits] : [...edits, ask.nameModel(route.upstreamModel)]
  all.sort((a, b) => a.at.start - b.at.start)
  if (ask.body.size > largeBytes) return ask.body.spliced(all)
  return all.length === 0 ? ask.body.whole() : spliceBytes(ask.body.whole(), all)
}

export function passBody(ask: Ask, route: Route, _options: BodyOptions): Payload {
  return spliced(ask, route, [])
}

/** The value of a field of a scanned body, parsed. */
export function fieldValue(body: Uint8Array, field: Field | undefined): unknown {
  return field === undefined ? undefined : JSON.parse(textOf(body.subarray(field.value.start, field.value.end)))
}

/** Vendors send errors under status 200 too: a top-level `error` without what the answer should have. */
export function disguisedError(shape: JsonShape, expected: string): string | null {
  if (shape.root !== "object") return "the answer is not a JSON object"
  const error = shape.fields.get("error")
  const isError = error !== undefined && error.kind !== "null" && !shape.fields.has(expected)
  return isError ? "the answer is an error under status 200" : null
}
