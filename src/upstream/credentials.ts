import type { Upstream } from "../core/catalog.ts"

/** How long a key that the vendor refused is left out while others of the pool remain. */
const refusedMs = 60_000
const limitedMs = 10_000

export interface Credential {
  /** Null for a vendor that wants none. */
  readonly secret: string | null
  /** Tells the pool how the vendor took the key. */
  report(status: number): void
}

interface Pool {
  next: number
  readonly restUntil: number[]
}

/** Hands out the keys of an upstream in turn, resting those the vendor refused or limited. */
export function credentialPools(now: () => number): (upstream: Upstream) => Credential {
  const pools = new WeakMap<Upstream, Pool>()
  return (upstream) => {
    const { credentials } = upstream
    if (credentials.length < 2) return { secret: credentials[0] ?? null, report: () => {} }
    let pool = pools.get(upstream)
    if (pool === undefined) {
      pool = { next: 0, restUntil: credentials.map(() => 0) }
      pools.set(upstream, pool)
    }
    return takeTurn(pool, credentials, now)
  }
}

function takeTurn(pool: Pool, credentials: readonly string[], now: () => number): Credential {
  const size = credentials.length
  const time = now()
  let chosen = pool.next % size
  for (let step = 0; step < size; step++) {
    const candidate = (pool.next + step) % size
    if (pool.restUntil[candidate]! <= time) {
      chosen = candidate
      break
    }
  }
  pool.next = (chosen + 1) % size
  return {
    secret: credentials[chosen]!,
    report(status) {
      if (status === 401 || status === 402 || status === 403) pool.restUntil[chosen] = now() + refusedMs
      else if (status === 429) pool.restUntil[chosen] = now() + limitedMs
    },
  }
}
