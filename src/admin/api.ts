import { OpenAPIHono } from "@hono/zod-openapi"
import { getPath } from "hono/utils/url"
import { GatewayError } from "../core/errors.ts"
import { accountRoutes } from "./accounts.ts"
import { adminCheck, notAdmin } from "./auth.ts"
import { errorResponse, publicError, shown } from "./errors.ts"
import { jobRoutes } from "./jobs.ts"
import { ledgerRoutes } from "./ledger.ts"
import { modelRoutes } from "./models.ts"
import { descriptionRoute } from "./openapi.ts"
import { refuseInvalid } from "./parameters.ts"
import type { AdminParts } from "./parts.ts"
import { postingRoutes } from "./postings.ts"
import { requestRoutes } from "./requests.ts"
import { upstreamRoutes } from "./upstreams.ts"
import { usageRoutes } from "./usage.ts"

export type AdminApi = (request: Request, requestId: string) => Response | Promise<Response>

/**
 * The back-office API: answers everything under /api. Nobody gets past the door without the admin token, whatever the
 * path. A fault of the program is thrown, so that whoever holds the request reports it as any other.
 */
export function adminApi(parts: AdminParts): AdminApi {
  const isAdmin = adminCheck(parts.adminToken)
  const app = adminApp(parts)
  return async (request, requestId) => {
    const response = await (isAdmin(request) ? answered(app, request, requestId) : errorResponse(notAdmin(), requestId))
    response.headers.set("x-request-id", requestId)
    response.headers.set("cache-control", "no-store")
    return response
  }
}

/** All routes behind the door. */
export function adminApp(parts: AdminParts): OpenAPIHono {
  const app = new OpenAPIHono({ getPath: pathOf, defaultHook: refuseInvalid })
  accountRoutes(app, parts)
  upstreamRoutes(app, parts)
  modelRoutes(app, parts)
  postingRoutes(app, parts)
  ledgerRoutes(app, parts)
  requestRoutes(app, parts)
  jobRoutes(app, parts)
  usageRoutes(app, parts)
  descriptionRoute(app, parts.version)
  app.notFound(({ req }) => {
    throw nothingThere(app, req.method, req.path)
  })
  // Errors are written in one place, for those of every origin.
  app.onError((error) => {
    throw error
  })
  return app
}

async function answered(app: OpenAPIHono, request: Request, requestId: string): Promise<Response> {
  try {
    return await app.fetch(request)
  } catch (error) {
    const told = publicError(error)
    if (told === null) throw error
    return errorResponse(told, requestId)
  }
}

function nothingThere(app: OpenAPIHono, method: string, path: string): GatewayError {
  const known = new Set(app.routes.map((route) => route.method))
  const here = [...known].filter((each) => app.router.match(each, path)[0].length > 0)
  if (here.length === 0) return new GatewayError("not_found", `there is nothing at ${shown(path)}`)
  const allow = here.flatMap((each) => (each === "GET" ? ["GET", "HEAD"] : [each])).join(", ")
  return new GatewayError("method_not_allowed", `${shown(path)} takes ${allow}, not ${shown(method)}`, {
    headers: { allow },
  })
}

/** Where no usable host was sent, the address is the path alone, which Hono would cut in the wrong place. */
function pathOf(request: Request): string {
  return getPath(request.url.startsWith("/") ? new Request(`http://localhost${request.url}`) : request)
}
