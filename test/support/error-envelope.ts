import { expect } from "bun:test"
import type { RawResponse } from "./raw-http.ts"

export interface Told {
  readonly status: number
  readonly type: string
  readonly code: string
  /** Any text where not given. */
  readonly message?: string
}

/** The unified envelope to the byte: order of fields, and the same request id inside, outside and in the header. */
export function expectError(response: RawResponse, told: Told): void {
  const id = response.header("x-request-id") ?? ""
  // A UUID of version 7 without its dashes.
  expect(id).toMatch(/^req_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/)
  const message = told.message ?? (JSON.parse(response.text) as { error: { message: string } }).error.message
  expect(message).not.toBe("")
  const error = { type: told.type, code: told.code, message, request_id: id }
  expect(response.text).toBe(JSON.stringify({ error, request_id: id }))
  expect(response.status).toBe(told.status)
  expect(response.header("content-type")).toBe("application/json")
  expect(response.header("retry-after")).toBeUndefined()
}
