import { GatewayError } from "../core/errors.ts"
import { isObject, type JsonObject, type JsonValue } from "../core/json.ts"

/** A field as it may stand in a request or an answer: null means the same as absent. */
export type Field = JsonValue | undefined

/** Refuses the request, naming the place in it. */
export function refuse(place: string, problem: string): never {
  throw new GatewayError("invalid_parameter", `${place}: ${problem}`)
}

/** A value from the caller's request as an error message may show it. */
export function shown(field: Field): string {
  return (JSON.stringify(field) ?? "nothing").slice(0, 60)
}

export function isAbsent(field: Field): field is null | undefined {
  return field === undefined || field === null
}

export function objectAt(field: Field, place: string): JsonObject {
  return isObject(field) ? field : refuse(place, "must be an object")
}

export function listAt(field: Field, place: string, problem = "must be an array"): readonly JsonValue[] {
  return Array.isArray(field) ? (field as readonly JsonValue[]) : refuse(place, problem)
}

export function stringAt(field: Field, place: string): string {
  return typeof field === "string" ? field : refuse(place, "must be a string")
}

/** A string that names something, and so cannot be empty. */
export function nameAt(field: Field, place: string): string {
  return typeof field === "string" && field !== "" ? field : refuse(place, "must be a non-empty string")
}

/** Numbers are optional wherever the dialects have them. */
export function numberAt(field: Field, place: string): number | undefined {
  if (isAbsent(field)) return undefined
  return typeof field === "number" ? field : refuse(place, "must be a number")
}
