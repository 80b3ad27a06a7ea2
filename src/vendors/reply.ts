import { GatewayError } from "../core/errors.ts"
import { isObject, type JsonValue } from "../core/json.ts"
import type { Reply } from "../core/vendor-job.ts"

export type Value = JsonValue | undefined

/** Vendors' texts go to callers; a whole stack trace should not. */
const longestReason = 300

/** What stands at a path of a reply, or undefined: a vendor's reply may have any shape. */
export function at(value: Value, ...path: readonly string[]): Value {
  let found = value
  for (const name of path) found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined
  return found
}

export function textAt(value: Value, ...path: readonly string[]): string | null {
  const found = at(value, ...path)
  return typeof found === "string" && found.trim() !== "" ? found : null
}

/** A list, or nothing where there is none. */
export function listOf(value: Value): readonly JsonValue[] {
  return Array.isArray(value) ? value : []
}

/** An address that can be called; anything else a vendor puts in its place is no address. */
export function addressAt(value: Value, ...path: readonly string[]): string | null {
  const found = textAt(value, ...path)
  return found !== null && isAddress(found) ? found : null
}

/** A part of the reference that an adapter made itself. */
export function refText(ref: JsonValue, name: string): string {
  const found = textAt(ref, name)
  if (found !== null) return found
  throw new GatewayError("internal_error", "internal error", { internal: `the job's reference has no "${name}"` })
}

/** One readable line of a vendor's text. */
export function reasonText(text: string): string {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length > longestReason ? `${line.slice(0, longestReason)}…` : line
}

/** The text of an error in any of the shapes `detail` (text or a list of problems), `message`, `error` and `title`. */
export function errorText(json: Value): string | null {
  const problems = listOf(at(json, "detail"))
    .map(problemText)
    .filter((text) => text !== null)
  if (problems.length > 0) return reasonText(problems.join("; "))
  const text =
    textAt(json, "detail") ??
    textAt(json, "detail", "message") ??
    textAt(json, "message") ??
    textAt(json, "error", "message") ??
    textAt(json, "error") ??
    textAt(json, "title")
  return text === null ? null : reasonText(text)
}

/** Not a verdict: the reply is an error status or nothing that can be understood. */
export function unreadable(reply: Reply) {
  const text = errorText(reply.json) ?? reasonText(reply.text)
  return { kind: "unreadable", why: text === "" ? `HTTP ${reply.status}` : `HTTP ${reply.status}: ${text}` } as const
}

export function isOk(reply: Reply): boolean {
  return reply.status >= 200 && reply.status < 300
}

function problemText(problem: JsonValue): string | null {
  const text = textAt(problem, "msg") ?? (typeof problem === "string" ? problem : null)
  const place = listOf(at(problem, "loc")).filter((part) => part !== "body")
  return text === null || place.length === 0 ? text : `${place.join(".")}: ${text}`
}

/** True for an address that can be called. */
export function isAddress(text: string): boolean {
  return /^https?:\/\//i.test(text) && URL.canParse(text)
}
