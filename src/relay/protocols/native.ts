import type { Route } from "../../core/catalog.ts"
import { textOf } from "../../lib/bytes.ts"
import { type Edit, type Field, type JsonShape, spliceBytes } from "../../lib/json-bytes.ts"
import type { Ask, BodyOptions } from "../protocol.ts"

/** The caller's bytes with the route's own model name and a few edits put in: nothing else changes. */
export function spliced(ask: Ask, route: Route, edits: readonly Edit[]): Uint8Array {
  const all = route.upstreamModel === ask.model ? [...edits] : [...edits, ask.nameModel(route.upstreamModel)]
  if (all.length === 0) return ask.bytes
  return spliceBytes(
    ask.bytes,
    all.sort((a, b) => a.at.start - b.at.start),
  )
}

export function passBody(ask: Ask, route: Route, _options: BodyOptions): Uint8Array {
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
