import type { Call } from "../admission/call.ts"
import { GatewayError } from "../core/errors.ts"
import type { Principal } from "../core/principal.ts"
import type { VideoApi } from "../video/videos.ts"
import { jsonResponse } from "./responses.ts"

const root = "/v1/videos"
const mostPerPage = 100
const usualPerPage = 20

/** An address below /v1/videos. */
export type VideoPlace =
  | { readonly kind: "jobs" }
  | { readonly kind: "job"; readonly id: string }
  | { readonly kind: "content"; readonly id: string }

/** Where a path leads to among the videos; null: nowhere. */
export function videoPlace(path: string): VideoPlace | null {
  if (path === root) return { kind: "jobs" }
  if (!path.startsWith(`${root}/`)) return null
  const [id = "", page, ...more] = path.slice(root.length + 1).split("/")
  if (id === "" || more.length > 0) return null
  if (page === undefined) return { kind: "job", id }
  return page === "content" ? { kind: "content", id } : null
}

export function videoMethods({ kind }: VideoPlace): string {
  switch (kind) {
    case "jobs":
      return "GET, HEAD, POST"
    case "job":
      return "GET, HEAD, DELETE"
    case "content":
      return "GET, HEAD"
  }
}

/** `POST /v1/videos`; the call is counted out by its own end. */
export async function submitPage(call: Call, videos: VideoApi): Promise<Response> {
  const submitted = await videos.submit(call)
  return submitted instanceof Response ? submitted : jsonResponse(submitted, call.requestId)
}

/** True where a call for content brings a signed link instead of a credential. */
export function isSigned(place: VideoPlace, query: string, videos: VideoApi): boolean {
  return place.kind === "content" && query !== "" && videos.isSigned(place.id, new URLSearchParams(query))
}

/** Everything but a submit. `principal` is null for a signed link. */
export async function videoPage(
  place: VideoPlace,
  { request, requestId, query }: { readonly request: Request; readonly requestId: string; readonly query: string },
  principal: Principal | null,
  videos: VideoApi,
): Promise<Response> {
  const accountId = principal?.accountId ?? null
  if (place.kind === "content") return withRequestId(await videos.content(accountId, place.id, request), requestId)
  // Only content is ever asked for without a credential.
  if (accountId === null) throw new Error("a signed link leads to content alone")
  if (place.kind === "jobs") return jsonResponse(await videos.list(accountId, readPage(query), request), requestId)
  if (request.method === "DELETE") return jsonResponse(await videos.remove(accountId, place.id), requestId)
  return jsonResponse(await videos.show(accountId, place.id, request), requestId)
}

function withRequestId(response: Response, requestId: string): Response {
  response.headers.set("x-request-id", requestId)
  return response
}

function readPage(query: string): { readonly limit: number; readonly after: string | null } {
  const asked = new URLSearchParams(query)
  const limit = asked.get("limit") ?? String(usualPerPage)
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > mostPerPage)
    throw new GatewayError("invalid_parameter", `limit: must be a whole number from 1 to ${mostPerPage}`)
  return { limit: Number(limit), after: asked.get("after") }
}
