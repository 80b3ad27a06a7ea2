import type { Route } from "../core/catalog.ts"
import type { Endpoint } from "../core/endpoints.ts"
import type { TokenUsage } from "../core/usage.ts"
import type { Field, JsonShape, Span } from "../lib/json-bytes.ts"
import type { StreamTap } from "./tap.ts"

/** A request as it was asked: the caller's bytes, and where in them the gateway's own interests stand. */
export interface Ask {
  readonly bytes: Uint8Array
  readonly model: string
  /** Where the model's name stands, quotes included. */
  readonly modelField: Field
  readonly stream: boolean
  readonly shape: JsonShape
}

/** A change to the caller's bytes: `put` in place of what stands at `at`. */
export interface Edit {
  readonly at: Span
  readonly put: Uint8Array
}

/** What the relay has to know about one endpoint of the model API. */
export interface Protocol {
  readonly endpoint: Endpoint
  /** The largest request body, in bytes. */
  readonly bodyLimit: number
  /** Top-level request fields the gateway reads; each may stand there once. */
  readonly requestFields: readonly string[]
  /** Everything besides the model's name that is changed for a route. */
  edits(ask: Ask, route: Route, options: EditOptions): readonly Edit[]
  tap(): StreamTap
  /** Top-level fields of a whole answer that the gateway reads. */
  readonly answerFields: readonly string[]
  /** Why a 200 answer is none, or null. */
  answerProblem(shape: JsonShape): string | null
  answerUsage(body: Uint8Array, shape: JsonShape): TokenUsage | null
}

export interface EditOptions {
  /** False for a vendor that is known to refuse `stream_options`. */
  readonly streamOptions: boolean
}
