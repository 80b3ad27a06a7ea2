import type { JsonObject, JsonValue } from "./json.ts"

/** A call to a vendor, built by an adapter; someone else adds the credential and makes it. */
export interface VendorCall {
  readonly method: "GET" | "POST" | "PUT" | "DELETE"
  /** Absolute. The credential goes along only to the upstream's own host and the hosts its adapter lists. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: JsonObject
}

/** A vendor's reply as an adapter reads it. */
export interface Reply {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The parsed JSON, or null where the body was none. */
  readonly json: JsonValue
  /** The body's text, cut to a readable length. */
  readonly text: string
}

/** What an adapter may know of the upstream that it builds calls for. */
export interface VendorContext {
  readonly baseUrl: string
  readonly upstreamModel: string
  /** The vendor's own settings of the upstream. */
  readonly settings: Readonly<Record<string, JsonValue>>
}
