/** What a page may send and read; browsers ask about both. */
const allowedHeaders =
  "authorization, x-api-key, content-type, accept, idempotency-key, openai-beta, anthropic-version, anthropic-beta"
const exposedHeaders = "x-request-id, x-upstream-request-id, retry-after, x-ratelimit-limit, x-ratelimit-remaining"
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

export function preflightResponse(origin: string, allow: string, requestId: string): Response {
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-origin": origin,
      "access-control-allow-methods": allow,
      "access-control-allow-headers": allowedHeaders,
      "access-control-max-age": preflightSeconds,
      vary: "origin",
      "x-request-id": requestId,
    },
  })
}

export function allowOrigin(response: Response, origin: string): Response {
  response.headers.set("access-control-allow-origin", origin)
  response.headers.set("access-control-expose-headers", exposedHeaders)
  response.headers.append("vary", "origin")
  return response
}
