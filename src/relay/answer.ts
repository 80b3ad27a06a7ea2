import type { Ask } from "../admission/ask.ts"
import type { Reading } from "../core/measured.ts"
import type { TokenUsage } from "../core/usage.ts"
import type { Credential } from "../upstream/credentials.ts"
import type { Meter } from "./meter.ts"
import type { Carriage } from "./protocol.ts"
import type { StreamTap } from "./taps/tap.ts"

/** A whole answer, read to its end. */
export interface WholeAnswer {
  readonly kind: "whole"
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: Uint8Array
  readonly reading: Reading
  /** What the model made, as text, for counting where the upstream does not. */
  produced(): string
  /** The body once tokens were counted, where the upstream reported no usage and the caller's dialect demands one. */
  counted?(usage: TokenUsage): Uint8Array
}

/** A stream that has begun: its first token is among the bytes held. */
export interface BegunStream {
  readonly kind: "stream"
  readonly headers: Record<string, string>
  readonly reader: StreamReader
  readonly tap: StreamTap
  readonly held: Uint8Array
  /** Ends the upstream call at once. */
  readonly abort: () => void
}

/** An answer that is passed on as it comes; its first bytes have arrived. */
export interface BegunFlow {
  readonly kind: "flow"
  readonly status: number
  readonly headers: Record<string, string>
  readonly reader: StreamReader
  readonly first: Uint8Array
  /** Reads what it is charged by; null where the request alone tells. */
  readonly meter: Meter | null
  /** Ends the upstream call at once. */
  readonly abort: () => void
}

export type Answer = WholeAnswer | BegunStream | BegunFlow

export type StreamReader = ReadableStreamDefaultReader<Uint8Array>

export interface AttemptTerms {
  readonly requestId: string
  readonly ask: Ask
  readonly carriage: Carriage
  readonly clientHeaders: Headers
  /** The query string with its question mark, or nothing. */
  readonly query: string
  /** Set for calls that end when the caller leaves. */
  readonly clientSignal: AbortSignal | null
  readonly credential: Credential
  readonly streamOptions: boolean
  /** Lets results be fetched from private addresses, for development. */
  readonly allowPrivateAddresses: boolean
  /** When the request as a whole must be over, by `performance.now()`. */
  readonly deadline: number
  /** Holds what ends this attempt, while it runs, for an instance that can wait no longer. */
  readonly running: Set<() => void>
}
