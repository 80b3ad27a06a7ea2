import type { HeaderPair } from "../wire/request-parser.ts"
import { plainId } from "./ids.ts"

/** Headers the real vendor sends and a gateway must pick from. */
export function openaiHeaders(): HeaderPair[] {
  return [
    ["x-request-id", `req_${plainId()}`],
    ["openai-organization", "simulated"],
    ["openai-version", "2020-10-01"],
  ]
}
