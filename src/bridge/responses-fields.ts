import type { JsonValue } from "../core/json.ts"
import type { Field } from "./fields.ts"

/** The entries of an array; none for anything else. */
export function listOf(field: Field): readonly JsonValue[] {
  return Array.isArray(field) ? (field as readonly JsonValue[]) : []
}

/** The string itself; "" for anything else. */
export function textOf(field: Field): string {
  return typeof field === "string" ? field : ""
}

export function mintId(prefix: "resp" | "msg" | "fc" | "rs" | "call"): string {
  return `${prefix}_${Bun.randomUUIDv7().replaceAll("-", "")}`
}
