import { GatewayError } from "../../core/errors.ts"
import type { JsonObject } from "../../core/json.ts"

/** Fields of the images call that other vendors do not know or mean otherwise: kept out unless a model knows them. */
const callersDialect: ReadonlySet<string> = new Set([
  "model",
  "prompt",
  "n",
  "size",
  "response_format",
  "user",
  "stream",
  "quality",
  "style",
  "background",
  "moderation",
  "input_fidelity",
  "output_format",
  "output_compression",
  "partial_images",
])

/** The caller's other fields as the vendor's own parameters; `knows` names those of the dialect that the vendor has too. */
export function vendorFields(extra: JsonObject, knows: readonly string[] = []): JsonObject {
  return Object.fromEntries(Object.entries(extra).filter(([name]) => knows.includes(name) || !callersDialect.has(name)))
}

/** Refuses more images than a model makes in one call; null leaves it to the vendor. */
export function checkCount(count: number, most: number | null): void {
  if (most === null || count <= most) return
  const takes = most === 1 ? "one image per request" : `at most ${most} images per request`
  throw new GatewayError("invalid_parameter", `n: this model makes ${takes}`)
}
