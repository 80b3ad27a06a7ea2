import type { Upstream } from "../core/catalog.ts"

/** Requests in flight per upstream, for those that are configured with a limit of their own. */
export interface UpstreamLoad {
  hasRoom(upstream: Upstream): boolean
  /** Takes a place; the function gives it back, once. */
  enter(upstream: Upstream): () => void
}

export function upstreamLoad(): UpstreamLoad {
  const inFlight = new Map<string, number>()
  return {
    hasRoom: (upstream) => upstream.concurrency === 0 || (inFlight.get(upstream.id) ?? 0) < upstream.concurrency,
    enter(upstream) {
      inFlight.set(upstream.id, (inFlight.get(upstream.id) ?? 0) + 1)
      let left = false
      return () => {
        if (left) return
        left = true
        inFlight.set(upstream.id, inFlight.get(upstream.id)! - 1)
      }
    },
  }
}
