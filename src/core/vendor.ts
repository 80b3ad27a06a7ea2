import type { Endpoint } from "./endpoints.ts"

/** Where a vendor wants its credential: `Authorization: Bearer …` or a header of its own. */
export type AuthScheme =
  | "bearer"
  | "x-api-key"
  | "api-key"
  | "x-goog-api-key"
  | "x-key"
  | "authorization-key"
  | "authorization-token"
  | "none"

/** Ways in which an otherwise compatible vendor differs from the protocol it speaks. */
export interface Quirks {
  /** Does not know `stream_options`: it is left out, and usage is taken from where the vendor puts it or counted here. */
  readonly noStreamOptions?: true
}

/** A setting that only this vendor's upstreams may carry. */
export interface VendorSetting {
  readonly type: "string" | "boolean"
  readonly meaning: string
  /** The words it takes; any where not given. */
  readonly choices?: readonly string[]
}

/** A vendor as a kind of upstream: the protocol facts that every connection to that company shares. */
export interface VendorPreset {
  readonly name: string
  readonly title: string
  /** The common prefix of its paths; null where each customer has an address of its own. */
  readonly baseUrl: string | null
  readonly auth: AuthScheme
  /** Endpoints that want the credential in another place than the rest. */
  readonly authFor?: Readonly<Partial<Record<Endpoint, AuthScheme>>>
  /** Servers people run themselves often ask for no credential: an upstream without one sends none. */
  readonly keyOptional?: true
  /** Headers that every call carries unless the caller sent them, such as a protocol version. */
  readonly headers?: Readonly<Record<string, string>>
  readonly paths: Readonly<Partial<Record<Endpoint, string>>>
  /** Endpoints that speak the vendor's own protocol: an adapter serves them, bytes are never passed through. Video always does. */
  readonly adapted?: readonly Endpoint[]
  readonly quirks?: Quirks
  readonly settings?: Readonly<Record<string, VendorSetting>>
}
