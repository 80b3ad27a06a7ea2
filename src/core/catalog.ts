import type { Endpoint } from "./endpoints.ts"
import type { JsonValue } from "./json.ts"
import type { Price } from "./price.ts"
import type { Timeouts } from "./timeouts.ts"
import type { Tokenizer } from "./tokenizer.ts"
import type { VendorPreset } from "./vendor.ts"

export interface Plan {
  readonly name: string
  /** Requests in flight at once per account; 0: unlimited. */
  readonly concurrency: number
  /** Model names, or patterns with `*`. */
  readonly models: readonly string[]
  /** Exact decimal, as text. */
  readonly priceMultiplier: string
}

/** One configured connection to a vendor. */
export interface Upstream {
  readonly id: string
  readonly name: string
  readonly vendor: VendorPreset
  readonly baseUrl: string
  readonly credentials: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly timeouts: Timeouts
  /** Requests in flight at once to this upstream; 0: unlimited. */
  readonly concurrency: number
  readonly settings: Readonly<Record<string, JsonValue>>
}

/** A way to serve a model: lower priority first, weight inside one priority. */
export interface Route {
  readonly upstream: Upstream
  readonly upstreamModel: string
  readonly priority: number
  readonly weight: number
}

export interface Model {
  readonly name: string
  readonly price: Price
  /** What its tokens are counted with where an upstream does not say. */
  readonly tokenizer: Tokenizer
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Set where the operator narrowed the model to some endpoints. */
  readonly endpoints: readonly Endpoint[] | null
  readonly routes: readonly Route[]
}

/** Everything routing needs, compiled from the database once and never changed: a request keeps the one it started with. */
export interface Snapshot {
  readonly version: number
  readonly models: ReadonlyMap<string, Model>
  readonly plans: ReadonlyMap<string, Plan>
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly drainMs: number
  /** Origins whose pages may call from a browser; none: CORS is off. */
  readonly corsOrigins: readonly string[]
  readonly allowPrivateAddresses: boolean
  /** How long requests are kept, in milliseconds; null: for good. */
  readonly keepRequestsMs: number | null
  /** The routes of a model whose vendor has the endpoint, in order of priority. */
  routes(model: Model, endpoint: Endpoint): readonly Route[]
}
