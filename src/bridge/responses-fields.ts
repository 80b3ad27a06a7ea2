import { GatewayError } from "../core/errors.ts"
import { isObject, type JsonObject, type JsonValue } from "../core/json.ts"

/** A field as it may stand in a request or an answer: null means the same as absent. */
export type Field = JsonValue | undefined

/** Refuses the request, naming the place in it. */
export function refuse(place: string, problem: string): never {
  throw new GatewayError("invalid_parameter", `${place}: ${problem}`)
}

export function isAbsent(field: Field): field is null | undefined {
  return field === undefined || field === null
}

export function nameAt(field: Field, place: string): string {
  return typeof field === "string" && field !== "" ? field : refuse(place, "must be a non-empty string")
}

export function objectAt(field: Field, place: string): JsonObject {
  return isObject(field) ? field : refuse(place, "must be an object")
}

export function listAt(field: Field, place: string): readonly JsonValue[] {
  return Array.isArray(field) ? listOf(field) : refuse(place, "must be an array")
}

/** The entries of an array; none for anything else. */
export function listOf(field: Field): readonly JsonValue[] {
  return Array.isArray(field) ? (field as readonly JsonValue[]) : []
}

/** The string itself; "" for anything else. */
export function textOf(field: Field): string {
  return typeof field === "string" ? field : ""
}

/** A value from the caller's request as an error message may show it. */
export function shown(field: Field): string {
  return (JSON.stringify(field) ?? "nothing").slice(0, 60)
}

export function mintId(prefix: "resp" | "msg" | "fc" | "rs" | "call"): string {
  return `${prefix}_${Bun.randomUUIDv7().replaceAll("-", "")}`
}
