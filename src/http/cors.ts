/** What a page may read. */
const exposedHeaders =
  "x-request-id, request-id, x-upstream-request-id, retry-after, x-should-retry, x-ratelimit-limit, x-ratelimit-remaining"
const preflightSeconds = "600"

/** The origin to be allowed: null where the request has none or the operator does not list it. */
export function allowedOrigin(request: Request, origins: readonly string[]): string | null {
  if (origins.length === 0) return null
  const origin = request.headers.get("origin")
  if (origin === null) return null
  return origins.includes("*") || origins.includes(origin) ? origin : null
}

/** A browser's question whether it may call, answered before anything else is looked at: it carries no credential. */
export function isPreflight(request: Request): boolean {
  return request.method === "OPTIONS" && request.headers.has("access-control-request-method")
}

export function preflightResponse(request: Request, origin: string, allow: string, requestId: string): Response {
  const headers: Record<string, string> = {
    "access-control-allow-origin": origin,
    "access-control-allow-methods": allow,
    "access-control-max-age": preflightSeconds,
    vary: "origin, access-control-request-headers",
    "x-request-id": requestId,
  }
  // The official clients send headers of their own, others with each version; what is not forwarded does no harm.
  const asked = request.headers.get("access-control-request-headers")
  if (asked !== null) headers["access-control-allow-headers"] = asked
  return new Response(null, { status: 204, headers })
}

export function allowOrigin(response: Response, origin: string): Response {
  response.headers.set("access-control-allow-origin", origin)
  response.headers.set("access-control-expose-headers", exposedHeaders)
  response.headers.append("vary", "origin")
  return response
}
