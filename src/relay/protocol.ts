import type { Ask, AskRules } from "../admission/ask.ts"
import type { Route } from "../core/catalog.ts"
import type { Endpoint } from "../core/endpoints.ts"
import type { ImageVendor } from "../core/image-vendor.ts"
import type { Measured, Reading } from "../core/measured.ts"
import type { TokenUsage } from "../core/usage.ts"
import type { JsonShape } from "../lib/json-bytes.ts"
import type { Payload } from "../upstream/client.ts"
import type { Meter } from "./meter.ts"
import type { StreamTap } from "./taps/tap.ts"

/** What the relay has to know about one endpoint of the model API. */
export interface Protocol extends AskRules {
  readonly endpoint: Endpoint
  /** What the request alone tells of what is charged by. */
  measureRequest?(ask: Ask): Partial<Measured>
  /** The length of what was uploaded, in millionths of a second, where the upstream does not say it. */
  estimateLength?(ask: Ask): number
  /** Nothing is charged for it. */
  readonly waived?: true
  /** Whether the gateway counts the request's tokens itself where this route would be asked, and that is the answer. */
  answersHere?(route: Route): boolean
  /** How a route carries this endpoint: by the same one, or by another over a bridge. */
  carriage(route: Route): Carriage
}

/** One way to carry a request to an upstream and its answer back: in one call, or as a job that is asked after. */
export type Carriage = CallCarriage | JobCarriage

export interface JobCarriage {
  readonly kind: "job"
  readonly endpoint: Endpoint
  readonly vendor: ImageVendor
}

export interface CallCarriage {
  readonly kind: "call"
  /** The upstream's endpoint that is asked. */
  readonly endpoint: Endpoint
  /** What is added to the endpoint's path. */
  readonly pathEnd?: string
  body(ask: Ask, route: Route, options: BodyOptions): Payload
  /** Set where the body is not the caller's own. */
  readonly contentType?: string
  tap(ask: Ask): StreamTap
  /** How an answer that is no event stream is taken. */
  readonly answer: WholeReader | PassOn
  /** The upstream's error body in the caller's dialect; absent where the two speak the same. */
  errorBody?(status: number, body: Uint8Array, requestId: string): Uint8Array
}

export interface BodyOptions {
  /** False for a vendor that is known to refuse `stream_options`. */
  readonly streamOptions: boolean
}

/** An answer is passed on as it comes. */
export interface PassOn {
  readonly kind: "pass_on"
  /** Reads it on its way; null where nothing in an answer of this type is charged by. */
  meter(contentType: string): Meter | null
}

/** A whole JSON answer is read and checked before anything of it goes to the caller. */
export interface WholeReader {
  readonly kind: "whole"
  /** Top-level fields to look at. */
  readonly fields: readonly string[]
  read(body: Uint8Array, shape: JsonShape, ask: Ask): WholeReading | { readonly problem: string }
}

export interface WholeReading {
  readonly body: Uint8Array
  readonly reading: Reading
  /** What the model made, as text, for counting where the upstream does not. */
  produced(): string
  /** The body once tokens were counted, where the upstream reported no usage and the caller's dialect demands one. */
  counted?(usage: TokenUsage): Uint8Array
  /** Set where the answer's type is not the upstream's own. */
  readonly contentType?: string
}
