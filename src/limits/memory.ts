import type { Limiter } from "./limiter.ts"

/** Slots of one instance, held in process. */
export function memoryLimiter(): Limiter {
  const held = new Map<string, Set<string>>()
  return {
    take(account, limit, lease) {
      let leases = held.get(account)
      if (limit > 0 && leases !== undefined && leases.size >= limit) return false
      if (leases === undefined) {
        leases = new Set()
        held.set(account, leases)
      }
      leases.add(lease)
      return true
    },
    give(account, lease) {
      const leases = held.get(account)
      if (leases === undefined) return
      leases.delete(lease)
      if (leases.size === 0) held.delete(account)
    },
    inFlight: (account) => held.get(account)?.size ?? 0,
  }
}
