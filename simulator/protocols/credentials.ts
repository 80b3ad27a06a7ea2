import { type HeaderPair, valuesOf } from "../wire/request-parser.ts"

/** Vendors differ in where the key stands: after a scheme in `authorization`, or alone in a header of their own. */
export function credentialsOf(headers: readonly HeaderPair[]): string[] {
  const schemes = valuesOf(headers, "authorization").map((value) => value.replace(/^\S+ +/, ""))
  return [...schemes, ...["x-api-key", "api-key", "x-goog-api-key", "x-key"].flatMap((name) => valuesOf(headers, name))]
}
