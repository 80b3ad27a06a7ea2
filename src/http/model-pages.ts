import { planAllows, planOf } from "../catalog/plans.ts"
import type { Snapshot } from "../core/catalog.ts"
import { GatewayError } from "../core/errors.ts"
import { type ListedModel, messagesModel, messagesModelPage, openaiModel, openaiModelList } from "../core/model-list.ts"
import type { Principal } from "../core/principal.ts"
import { type FixedWindow, fixedWindow } from "../limits/window.ts"
import { jsonResponse } from "./responses.ts"

/** Requests for model lists per account, over both paths. */
export const modelListLimit = 240
export const modelListWindowMs = 60_000

/** Upstreams are nobody's business, so every model is the gateway's own. */
const ownedBy = "tollgate"

const openaiPath = "/v1/models"
const messagesPath = "/compat/v1/models"

export interface ModelPages {
  /** Whether a path is one of these. */
  has(path: string): boolean
  answer(path: string, query: string, principal: Principal, snapshot: Snapshot, requestId: string): Response
}

export function modelPages(now: () => number): ModelPages {
  const window: FixedWindow = fixedWindow(modelListLimit, modelListWindowMs, now)
  return {
    has: (path) => [openaiPath, messagesPath].some((base) => path === base || path.startsWith(`${base}/`)),
    answer(path, query, principal, snapshot, requestId) {
      const { remaining, allowed } = window.hit(principal.accountId)
      const headers = { "x-ratelimit-limit": String(modelListLimit), "x-ratelimit-remaining": String(remaining) }
      try {
        const response = allowed ? page(path, query, principal, snapshot, requestId) : limited(requestId)
        for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
        return response
      } catch (error) {
        // A refusal has been counted like any other call, and says so.
        if (error instanceof GatewayError) throw new GatewayError(error.code, error.message, { headers, cause: error })
        throw error
      }
    },
  }
}

/** Word for word as specified: not the unified envelope. */
function limited(requestId: string): Response {
  return jsonResponse({ error: "rate limit exceeded", scope: "user" }, requestId, 429)
}

function page(path: string, query: string, principal: Principal, snapshot: Snapshot, requestId: string): Response {
  const isMessages = path.startsWith(messagesPath)
  const base = isMessages ? messagesPath : openaiPath
  const models = listed(snapshot, principal)
  if (path === base) {
    const asked = new URLSearchParams(query)
    const paging = { limit: asked.get("limit"), after_id: asked.get("after_id"), before_id: asked.get("before_id") }
    return jsonResponse(isMessages ? messagesModelPage(models, paging) : openaiModelList(models), requestId)
  }
  const name = decoded(path.slice(base.length + 1))
  const model = models.find((candidate) => candidate.name === name)
  if (model === undefined)
    throw new GatewayError(
      "model_not_found",
      `the model ${JSON.stringify(name.slice(0, 100))} does not exist or you do not have access to it`,
    )
  return jsonResponse(isMessages ? messagesModel(model) : openaiModel(model), requestId)
}

function listed(snapshot: Snapshot, principal: Principal): readonly ListedModel[] {
  const plan = planOf(snapshot, principal)
  return [...snapshot.models.values()]
    .filter(({ name }) => planAllows(plan, name))
    .map(({ name, createdAt }) => ({ name, createdAt, ownedBy }))
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
