import type { Principal } from "../core/principal.ts"
import { Lru } from "../lib/lru.ts"

/** How many credentials, good and bad, an instance remembers. */
const remembered = 20_000

export interface KeyDirectory {
  /** The owner of a key, or null. Answers at once for a key it remembers; rejects when the database is away. */
  find(token: string): Principal | null | Promise<Principal | null>
  /** Forgets everything, so that the next look-up sees what the database holds now. */
  forget(): void
}

/** Finds keys by digest, remembering answers until the catalog changes: a busy key costs no query. */
export function keyDirectory(
  digest: (token: string) => string,
  look: (digest: string) => Promise<Principal | null>,
): KeyDirectory {
  const known = new Lru<string, Principal | "nobody">(remembered)
  let generation = 0
  return {
    find(token) {
      const id = digest(token)
      const owner = known.get(id)
      if (owner !== undefined) return owner === "nobody" ? null : owner
      return lookUp(id)
    },
    forget() {
      generation += 1
      known.clear()
    },
  }

  async function lookUp(id: string): Promise<Principal | null> {
    const asked = generation
    const owner = await look(id)
    // An answer that was read before a change must not outlive it.
    if (asked === generation) known.set(id, owner ?? "nobody")
    return owner
  }
}
