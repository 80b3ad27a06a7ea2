import type { Snapshot } from "../core/catalog.ts"
import type { CircuitState } from "../core/events.ts"
import type { Store } from "../store/db.ts"

/** What the back-office API shows and by whose word it lets people in. */
export interface AdminParts {
  readonly store: Store
  /** What new requests are served by at this moment. */
  snapshot(): Snapshot
  /** How many requests of an account are being served now. */
  inFlight(accountId: string): number | Promise<number>
  /** Money came or went otherwise than by a charge. */
  balanceChanged(accountId: string): void
  circuit(upstreamId: string): CircuitState
  /** Null: nobody is let in. */
  readonly adminToken: string | null
  /** The version of the program, for the description of the API. */
  readonly version: string
}
