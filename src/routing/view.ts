import type { Upstream } from "../core/catalog.ts"
import type { Health } from "../upstream/health.ts"
import type { RoutingView } from "./itinerary.ts"
import type { RepeatBudget } from "./repeat-budget.ts"
import type { UpstreamLoad } from "./upstream-load.ts"

export interface ViewParts {
  readonly health: Health
  readonly load: UpstreamLoad
  readonly budget: RepeatBudget
}

/** How the upstreams stand, for one request that must be over by the deadline an upstream gives it. */
export function routingView(
  { health, load, budget }: ViewParts,
  deadline: (upstream: Upstream) => number,
): RoutingView {
  return {
    admits: ({ upstream }) => health.circuit(upstream.id).admits && load.hasRoom(upstream),
    // Without room it is no last resort: only the breaker is overruled, never the upstream's own limit.
    openedAt: ({ upstream }) => (load.hasRoom(upstream) ? health.circuit(upstream.id).openedAt : null),
    mayRepeat: ({ upstream }, pauseMs) => performance.now() + pauseMs < deadline(upstream) && budget.mayRepeat(),
    random: Math.random,
  }
}
