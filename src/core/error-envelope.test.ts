import { expect, test } from "bun:test"
import { errorEnvelope } from "./error-envelope.ts"
import { GatewayError } from "./errors.ts"

const error = new GatewayError("model_not_found", 'no "model"\nhere', {
  internal: "row 7 is missing",
  headers: { "x-secret": "h" },
  cause: new Error("cause"),
})

test("unified: type, code and message, the request id in both places, and nothing internal", () => {
  expect(errorEnvelope(error, "req_1", "unified")).toBe(
    '{"error":{"type":"not_found_error","code":"model_not_found","message":"no \\"model\\"\\nhere","request_id":"req_1"},"request_id":"req_1"}',
  )
})

test("messages: the same inside the style of its neighbours, with the code kept", () => {
  expect(errorEnvelope(error, "req_1", "messages")).toBe(
    '{"type":"error","error":{"type":"not_found_error","code":"model_not_found","message":"no \\"model\\"\\nhere","request_id":"req_1"},"request_id":"req_1"}',
  )
})

test("401 is chat style in every dialect", () => {
  const refused = new GatewayError("invalid_api_key", "no key")
  for (const dialect of ["unified", "messages"] as const) {
    expect(errorEnvelope(refused, "req_1", dialect)).toBe(
      '{"error":{"message":"no key","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}',
    )
  }
})

test.each([
  ["invalid_json", 400, "invalid_request_error"],
  ["missing_model", 400, "invalid_request_error"],
  ["duplicate_key", 400, "invalid_request_error"],
  ["invalid_parameter", 400, "invalid_request_error"],
  ["invalid_api_key", 401, "invalid_request_error"],
  ["insufficient_balance", 402, "billing_error"],
  ["account_suspended", 403, "permission_error"],
  ["model_not_found", 404, "not_found_error"],
  ["job_not_found", 404, "not_found_error"],
  ["not_found", 404, "not_found_error"],
  ["method_not_allowed", 405, "invalid_request_error"],
  ["request_body_too_large", 413, "invalid_request_error"],
  ["unsupported_media_type", 415, "invalid_request_error"],
  ["concurrency_limit", 429, "rate_limit_error"],
  ["internal_error", 500, "api_error"],
  ["upstream_unreachable", 502, "api_error"],
  ["upstream_error", 502, "api_error"],
  ["upstream_invalid_response", 502, "api_error"],
  ["upstream_stream_truncated", 502, "api_error"],
  ["backend_unavailable", 503, "overloaded_error"],
  ["request_timeout", 504, "timeout_error"],
  ["first_token_timeout", 504, "timeout_error"],
  ["stream_silence_timeout", 504, "timeout_error"],
  ["stream_total_timeout", 504, "timeout_error"],
] as const)("%s is %d %s", (code, status, type) => {
  const made = new GatewayError(code, "text")
  expect({ status: made.status, type: made.type }).toEqual({ status, type })
})
