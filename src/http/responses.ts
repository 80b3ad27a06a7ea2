import type { ErrorDialect } from "../core/endpoints.ts"
import { errorEnvelope, errorHeaders } from "../core/error-envelope.ts"
import type { GatewayError } from "../core/errors.ts"

const json = "application/json"

export function errorResponse(error: GatewayError, requestId: string, dialect: ErrorDialect): Response {
  const headers = { ...errorHeaders(error), "x-request-id": requestId }
  return new Response(errorEnvelope(error, requestId, dialect), { status: error.status, headers })
}

/** Word for word as specified: not the unified envelope. */
export function drainingResponse(requestId: string): Response {
  return new Response('{"error":"instance draining"}', {
    status: 503,
    headers: { "content-type": json, connection: "close", "x-request-id": requestId },
  })
}

export function jsonResponse(body: unknown, requestId: string, status = 200): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": json, "x-request-id": requestId } })
}

export function textResponse(text: string, requestId: string): Response {
  const type = "text/plain; version=0.0.4; charset=utf-8"
  return new Response(text, { headers: { "content-type": type, "x-request-id": requestId } })
}
