import type { ErrorDialect } from "./endpoints.ts"
import type { GatewayError } from "./errors.ts"

/** The headers that go with an error's body. */
export function errorHeaders(error: GatewayError): Record<string, string> {
  const headers: Record<string, string> = { "content-type": "application/json", ...error.headers }
  if (error.code === "invalid_api_key") headers["www-authenticate"] = "Bearer"
  return headers
}

/** The JSON text of an error in the caller's dialect, the request id in both places. */
export function errorEnvelope(error: GatewayError, requestId: string, dialect: ErrorDialect): string {
  // Authentication is refused before any route handler runs, so its body is chat-completions style everywhere.
  if (error.code === "invalid_api_key") {
    return JSON.stringify({ error: { message: error.message, type: error.type, param: null, code: error.code } })
  }
  const detail = { type: error.type, code: error.code, message: error.message, request_id: requestId }
  if (dialect === "messages") return JSON.stringify({ type: "error", error: detail, request_id: requestId })
  return JSON.stringify({ error: detail, request_id: requestId })
}
