/** The fields of a JSON object whose kinds nobody has checked. */
export type Fields = Readonly<Record<string, unknown>>

/** The string itself; "" for anything else. */
export function stringOf(value: unknown): string {
  return typeof value === "string" ? value : ""
}

/** The entries of an array; none for anything else. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
