import type { Endpoint } from "../core/endpoints.ts"
import type { JsonValue } from "../core/json.ts"
import type { Price } from "../core/price.ts"
import type { Timeouts } from "../core/timeouts.ts"
import type { Tokenizer } from "../core/tokenizer.ts"

/** A config file after reading: defaults filled in, amounts as exact decimal text, durations in milliseconds, environment resolved. */
export interface ConfigDocument {
  readonly upstreams?: readonly UpstreamConfig[]
  readonly models?: readonly ModelConfig[]
  readonly plans?: readonly PlanConfig[]
  readonly accounts?: readonly AccountConfig[]
  readonly people?: readonly PersonConfig[]
  readonly timeouts?: Partial<Timeouts> & { readonly drain?: number }
  /** Origins whose pages may call from a browser. */
  readonly corsOrigins?: readonly string[]
  readonly allowPrivateAddresses?: boolean
  readonly retention?: RetentionConfig
}

export interface UpstreamConfig {
  readonly name: string
  readonly vendor: string
  /** Null: the vendor's own. */
  readonly baseUrl: string | null
  readonly apiKeys: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly timeouts: Partial<Timeouts>
  /** 0: unlimited. */
  readonly concurrency: number
  readonly settings: Readonly<Record<string, JsonValue>>
}

export interface ModelConfig {
  readonly name: string
  readonly price: Price
  /** Null: the usual one. */
  readonly tokenizer: Tokenizer | null
  /** Null: every endpoint that its routes have. */
  readonly endpoints: readonly Endpoint[] | null
  readonly routes: readonly RouteConfig[]
}

export interface RouteConfig {
  readonly upstream: string
  readonly model: string
  readonly priority: number
  readonly weight: number
}

export interface PlanConfig {
  readonly name: string
  /** 0: unlimited. */
  readonly concurrency: number
  readonly models: readonly string[]
  readonly priceMultiplier: string
}

export interface AccountConfig {
  readonly name: string
  readonly plan: string | null
  /** Null: the plan's; 0: unlimited. */
  readonly concurrency: number | null
  /** Dollars, posted once when the account is new. */
  readonly balance: string | null
  readonly keys: readonly AccountKeyConfig[]
}

export interface AccountKeyConfig {
  readonly name: string
  readonly key: string
}

export interface PersonConfig {
  readonly email: string
  readonly password: string
  readonly role: "admin" | "member"
  readonly account: string | null
}

/** How long things are kept. */
export interface RetentionConfig {
  /** Milliseconds; null: for good. */
  readonly requests: number | null
}

/** What a file may leave out. A route's model defaults to the name of the model it serves. */
export const configDefaults = {
  upstreamConcurrency: 0,
  priority: 1,
  weight: 100,
  planConcurrency: 0,
  planModels: ["*"],
  priceMultiplier: "1",
} as const
