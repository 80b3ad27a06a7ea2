import { errorEnvelope, errorHeaders } from "../core/error-envelope.ts"
import { GatewayError } from "../core/errors.ts"
import { isUnavailable } from "../store/errors.ts"

/** Longer names are cut in messages: they are no names, only noise. */
const longestShown = 200

export function errorResponse(error: GatewayError, requestId: string): Response {
  const body = errorEnvelope(error, requestId, "unified")
  return new Response(body, { status: error.status, headers: errorHeaders(error) })
}

/** A failure as the caller is told of it; null where it is a fault of the program, which others have to hear about. */
export function publicError(error: unknown): GatewayError | null {
  if (error instanceof GatewayError) return error
  if (!isUnavailable(error)) return null
  return new GatewayError("backend_unavailable", "the gateway's database is not available; try again shortly", {
    cause: error,
  })
}

/** Nothing of this kind has that name. */
export function missing(kind: string, name: string): GatewayError {
  return new GatewayError("not_found", `there is no ${kind} ${JSON.stringify(shown(name))}`)
}

export function shown(text: string): string {
  return text.slice(0, longestShown)
}
