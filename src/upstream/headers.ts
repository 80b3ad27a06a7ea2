import type { Upstream } from "../core/catalog.ts"
import type { Endpoint } from "../core/endpoints.ts"
import type { AuthScheme } from "../core/vendor.ts"
import { version } from "../version.ts"

/** Request headers that travel on to the upstream; every `anthropic-*` header does too. Nothing else of the caller's goes. */
const forwarded = ["content-type", "accept", "user-agent", "idempotency-key", "traceparent", "openai-beta"] as const

/** Response headers that travel back to the caller. */
const returned = ["content-type", "content-disposition", "retry-after", "x-should-retry"] as const

export function upstreamHeaders(
  client: Headers,
  upstream: Upstream,
  endpoint: Endpoint | null,
  secret: string | null,
  /** The type of a body that a bridge wrote: then the caller's own dialect headers stay behind. */
  translated?: string,
): Record<string, string> {
  const named = namedByConnection(client)
  const headers: Record<string, string> = {
    "accept-encoding": "identity",
    "user-agent": `tollgate/${version}`,
    ...upstream.vendor.headers,
  }
  for (const name of forwarded) {
    const value = client.get(name)
    if (value !== null && !named?.has(name)) headers[name] = value
  }
  if (translated === undefined) {
    client.forEach((value, name) => {
      if (name.startsWith("anthropic-") && !named?.has(name)) headers[name] = value
    })
  } else {
    headers["content-type"] = translated
  }
  // In lower case, or a name that is spelled differently would be sent beside ours and both be joined.
  for (const name in upstream.headers) headers[name.toLowerCase()] = upstream.headers[name]!
  const { auth, authFor } = upstream.vendor
  if (secret !== null) credentialHeader(headers, (endpoint === null ? undefined : authFor?.[endpoint]) ?? auth, secret)
  return headers
}

/** The headers that `Connection` declares to be for this hop only; null in the usual case that it declares none. */
function namedByConnection(client: Headers): ReadonlySet<string> | null {
  const connection = client.get("connection")
  if (connection === null || connection === "keep-alive" || connection === "close") return null
  return new Set(connection.split(",").map((name) => name.trim().toLowerCase()))
}

function credentialHeader(headers: Record<string, string>, scheme: AuthScheme, secret: string): void {
  switch (scheme) {
    case "bearer":
      headers.authorization = `Bearer ${secret}`
      return
    case "authorization-key":
      headers.authorization = `Key ${secret}`
      return
    case "authorization-token":
      headers.authorization = `Token ${secret}`
      return
    case "none":
      return
    default:
      headers[scheme] = secret
  }
}

/** What of the upstream's answer the caller sees; its own request id under a name of ours. */
export function clientHeaders(upstream: Headers, endpoint?: Endpoint): Record<string, string> {
  const headers: Record<string, string> = {}
  if (endpoint === "messages") {
    upstream.forEach((value, name) => {
      if (name.startsWith("anthropic-ratelimit-")) headers[name] = value
    })
  }
  for (const name of returned) {
    const value = upstream.get(name)
    if (value !== null) headers[name] = value
  }
  const upstreamId = upstream.get("x-request-id") ?? upstream.get("request-id")
  if (upstreamId !== null) headers["x-upstream-request-id"] = upstreamId
  return headers
}

/** An upstream that repeats our credential must not tell it to our callers. */
export function blankHeaders(headers: Record<string, string>, secret: string | null): Record<string, string> {
  if (secret === null) return headers
  for (const name in headers) {
    if (headers[name]!.includes(secret)) headers[name] = headers[name]!.replaceAll(secret, "***")
  }
  return headers
}

/** What goes to an address that is not the upstream's own: nothing of the operator's, nothing of the caller's. */
export const strangerHeaders: Readonly<Record<string, string>> = { "user-agent": `tollgate/${version}` }

/** Event streams must reach the caller as they come, also through proxies that would buffer or compress them. */
export const streamHeaders = {
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const
