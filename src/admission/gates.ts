import { concurrencyLimit, planAllows } from "../catalog/plans.ts"
import type { Model, Plan, Route, Snapshot } from "../core/catalog.ts"
import type { Endpoint } from "../core/endpoints.ts"
import { GatewayError } from "../core/errors.ts"
import type { Limiter } from "../limits/limiter.ts"
import type { Call } from "./call.ts"

/** Unknown and not allowed are one answer, so that a plan does not reveal what others have. */
export function modelFor(
  name: string,
  snapshot: Snapshot,
  plan: Plan,
  endpoint: Endpoint,
): { readonly model: Model; readonly routes: readonly Route[] } {
  const model = snapshot.models.get(name)
  if (model === undefined || !planAllows(plan, name)) {
    throw new GatewayError(
      "model_not_found",
      `the model "${printable(name)}" does not exist or you do not have access to it`,
    )
  }
  const routes = snapshot.routes(model, endpoint)
  if (routes.length === 0) {
    throw new GatewayError("model_not_found", `the model "${printable(name)}" is not available on this endpoint`)
  }
  return { model, routes }
}

/** Waits only where the limiter does: within one process there is nothing to wait for. */
export function takeSlot({ principal, requestId }: Call, plan: Plan, limiter: Limiter): Promise<void> | void {
  const taken = limiter.take(principal.accountId, concurrencyLimit(plan, principal), requestId)
  return taken instanceof Promise ? taken.then(refuseUnless) : refuseUnless(taken)
}

function refuseUnless(taken: boolean): void {
  if (!taken) throw new GatewayError("concurrency_limit", "concurrency limit reached")
}

function printable(name: string): string {
  return JSON.stringify(name.slice(0, 100)).slice(1, -1)
}
