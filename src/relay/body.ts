import type { Route } from "../core/catalog.ts"
import { utf8 } from "../lib/bytes.ts"
import { spliceBytes } from "../lib/json-bytes.ts"
import type { Ask, EditOptions, Protocol } from "./protocol.ts"

/** The caller's bytes with the route's own model name and the protocol's few edits put in: nothing else changes. */
export function bodyFor(ask: Ask, route: Route, protocol: Protocol, options: EditOptions): Uint8Array {
  const edits = [...protocol.edits(ask, route, options)]
  if (route.upstreamModel !== ask.model)
    edits.push({ at: ask.modelField.value, put: utf8(JSON.stringify(route.upstreamModel)) })
  if (edits.length === 0) return ask.bytes
  edits.sort((a, b) => a.at.start - b.at.start)
  return spliceBytes(ask.bytes, edits)
}
