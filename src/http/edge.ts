import { readCredential } from "../auth/credential.ts"
import type { KeyDirectory } from "../auth/key-directory.ts"
import type { ErrorDialect } from "../core/endpoints.ts"
import { GatewayError } from "../core/errors.ts"
import type { Events } from "../core/events.ts"
import type { Principal } from "../core/principal.ts"
import { newRequestId } from "../lib/ids.ts"
import { type RelayParts, relay } from "../relay/relay.ts"
import type { VideoApi } from "../video/videos.ts"
import { allowedOrigin, allowOrigin, isPreflight, preflightResponse } from "./cors.ts"
import type { Lifecycle } from "./lifecycle.ts"
import type { ModelPages } from "./model-pages.ts"
import { drainingResponse, errorResponse, jsonResponse, textResponse } from "./responses.ts"
import { apiRoutes, dialectOf } from "./routes.ts"
import { isSigned, submitPage, videoMethods, videoPage, videoPlace } from "./video-pages.ts"

export interface EdgeParts {
  readonly lifecycle: Lifecycle
  readonly keys: KeyDirectory
  readonly relay: RelayParts
  readonly models: ModelPages
  readonly videos: VideoApi
  readonly events: Events
  /** The back office, below /api. */
  admin(request: Request, requestId: string): Response | Promise<Response>
  /** What has been counted, as text for whoever collects it. */
  metrics(): string
  /** Resolves while the database answers. */
  ping(): Promise<void>
  /** Whether an error means that the database is away. */
  isUnavailable(error: unknown): boolean
}

const routes = new Map(apiRoutes.map((route) => [route.path, route]))

/** Every request enters here and passes the gates in one order: drain, path and method, authentication, then its own. */
export function edge(parts: EdgeParts): (request: Request) => Response | Promise<Response> {
  return (request) => {
    const startedAt = performance.now()
    const requestId = newRequestId()
    const { path, query } = split(request.url)
    if (path === "/health" || path === "/health/ready") return health(path, requestId, parts)
    if (path === "/metrics") return textResponse(parts.metrics(), requestId)
    if (parts.lifecycle.draining) {
      parts.lifecycle.turnedAway()
      return drainingResponse(requestId)
    }
    const visit = {
      request,
      requestId,
      path,
      query,
      startedAt,
      dialect: dialectOf(path),
      ended: parts.lifecycle.enter(),
    }
    const { corsOrigins } = parts.relay.snapshot()
    return corsOrigins.length === 0 ? serve(visit, parts) : serveAcrossOrigins(visit, corsOrigins, parts)
  }
}

interface Visit {
  readonly request: Request
  readonly requestId: string
  readonly path: string
  readonly query: string
  readonly startedAt: number
  readonly dialect: ErrorDialect
  ended(): void
}

async function serveAcrossOrigins(visit: Visit, origins: readonly string[], parts: EdgeParts): Promise<Response> {
  const origin = allowedOrigin(visit.request, origins)
  if (origin === null) return serve(visit, parts)
  const allow = methodsOf(visit.path, parts)
  if (allow === null || !isPreflight(visit.request)) return allowOrigin(await serve(visit, parts), origin)
  visit.ended()
  return preflightResponse(visit.request, origin, allow, visit.requestId)
}

async function serve(visit: Visit, parts: EdgeParts): Promise<Response> {
  const response = await answered(visit, parts)
  // Clients of the messages dialect read the request's id under the name that its vendor gives it.
  if (visit.dialect === "messages" && !response.headers.has("request-id"))
    response.headers.set("request-id", visit.requestId)
  return response
}

async function answered(visit: Visit, parts: EdgeParts): Promise<Response> {
  try {
    const { request, path } = visit
    const route = routes.get(path)
    if (route !== undefined && request.method === route.method) {
      const known = authenticate(request, parts.keys)
      const principal = known instanceof Promise ? await known : known
      return await relay({ ...visit, principal }, route.protocol, parts.relay)
    }
    if (path === "/v1/videos" && request.method === "POST") {
      return await submitPage({ ...visit, principal: await authenticate(request, parts.keys) }, parts.videos)
    }
    const response = await serveOther(visit, parts)
    visit.ended()
    return response
  } catch (error) {
    visit.ended()
    return errorResponse(gatewayError(error, visit, parts), visit.requestId, visit.dialect)
  }
}

/** Everything that is not relayed. */
async function serveOther(visit: Visit, parts: EdgeParts): Promise<Response> {
  const { request, requestId, path, query } = visit
  if (path.startsWith("/api/")) return parts.admin(request, requestId)
  const allow = methodsOf(path, parts)
  if (allow === null) throw new GatewayError("not_found", `there is nothing at ${path.slice(0, 200)}`)
  if (!allow.split(", ").includes(request.method)) {
    throw new GatewayError("method_not_allowed", `${path.slice(0, 200)} takes ${allow}, not ${request.method}`, {
      headers: { allow },
    })
  }
  const video = videoPlace(path)
  if (video !== null) {
    const signed = isSigned(video, query, parts.videos)
    const principal = signed ? null : await authenticate(request, parts.keys)
    return videoPage(video, visit, principal, parts.videos)
  }
  if (path === "/") return jsonResponse({ service: "tollgate" }, requestId)
  const principal = await authenticate(request, parts.keys)
  return parts.models.answer(path, query, principal, parts.relay.snapshot(), requestId)
}

/** The methods a path takes; null where there is nothing. */
function methodsOf(path: string, parts: EdgeParts): string | null {
  if (routes.has(path)) return "POST"
  const video = videoPlace(path)
  if (video !== null) return videoMethods(video)
  return path === "/" || parts.models.has(path) ? "GET, HEAD" : null
}

/** Answers at once for a key that is remembered, which is nearly always. */
function authenticate(request: Request, keys: KeyDirectory): Principal | Promise<Principal> {
  const credential = readCredential(request.headers)
  const found = credential === null ? null : keys.find(credential)
  return found instanceof Promise ? found.then(admitted) : admitted(found)
}

/** One text for every cause, so that a refusal tells nothing about which keys exist. */
function admitted(principal: Principal | null): Principal {
  if (principal === null)
    throw new GatewayError(
      "invalid_api_key",
      "Missing or invalid API key. Send it as 'Authorization: Bearer <key>' or 'x-api-key: <key>'.",
    )
  if (principal.suspended) throw new GatewayError("account_suspended", "this account is suspended")
  return principal
}

function gatewayError(error: unknown, visit: Visit, parts: EdgeParts): GatewayError {
  if (error instanceof GatewayError) return error
  if (parts.isUnavailable(error)) {
    parts.events.databaseAway(error)
    return new GatewayError("backend_unavailable", "the gateway's database is not available; try again shortly", {
      cause: error,
    })
  }
  // A caller that hung up in mid-upload is no fault of ours, and nobody reads the answer.
  if (!visit.request.signal.aborted) parts.events.internalError(visit.requestId, error)
  return new GatewayError("internal_error", "something went wrong inside the gateway", { cause: error })
}

async function health(path: string, requestId: string, parts: EdgeParts): Promise<Response> {
  const { draining } = parts.lifecycle
  if (path === "/health") return jsonResponse({ status: draining ? "draining" : "ok" }, requestId)
  if (draining) return jsonResponse({ status: "draining" }, requestId, 503)
  try {
    await parts.ping()
    return jsonResponse({ status: "ready" }, requestId)
  } catch {
    return jsonResponse({ status: "database away" }, requestId, 503)
  }
}

/** Splits `http://host/path?query` without building a URL object; it is the path alone where no usable host was sent. */
function split(url: string): { path: string; query: string } {
  const start = url.startsWith("/") ? 0 : Math.max(0, url.indexOf("/", 8))
  const mark = url.indexOf("?", start)
  return mark < 0 ? { path: url.slice(start), query: "" } : { path: url.slice(start, mark), query: url.slice(mark) }
}
