import type { ErrorDialect } from "../../core/endpoints.ts"
import type { GatewayError } from "../../core/errors.ts"
import type { Measured } from "../../core/measured.ts"
import type { TokenUsage } from "../../core/usage.ts"

/** How an upstream's stream stands. `complete`: it may be ended as a success. */
export type StreamState = "open" | "complete" | "error_sent"

/**
 * Reads one upstream stream while its bytes pass, in the terms of one protocol.
 * It decides what may go on to the caller and when the answer has begun and ended; it does no I/O and knows no time.
 */
export interface StreamTap {
  /** Takes a chunk and returns what may go on now; null: nothing yet. */
  push(chunk: Uint8Array): Uint8Array | null
  /** The upstream closed. Returns the bytes still held back that may go on. */
  end(): Uint8Array | null
  /** The first token was seen: content, reasoning, a tool call, a refusal or a finish. */
  readonly begun: boolean
  /** The upstream's own end marker was seen; whatever follows it is ignored. */
  readonly ended: boolean
  readonly state: StreamState
  /** The upstream ended the stream properly, but by saying that it failed: it is passed on, and nothing is estimated for it. */
  readonly failed?: boolean
  /** An error the upstream sent as an event, as it wrote it. */
  readonly error: string | null
  /** Grows with each event that is neither a comment nor a ping. */
  readonly progress: number
  /** What may have been the last event is held back until it is known; there is no sense in waiting long for another. */
  readonly lingering?: boolean
  /** Sent while the upstream is silent, so that nobody on the way takes the connection for dead; absent: nothing is. */
  readonly ping?: Uint8Array
  readonly usage: TokenUsage | null
  /** What the stream said of other things that are charged by, tokens included; absent where it is made of tokens alone. */
  readonly measured?: Partial<Measured>
  /** It said something that cannot be charged by. */
  readonly usageInvalid: boolean
  /** What the model has produced so far, for counting where the upstream does not. */
  readonly produced: string
  /** Whether tokens are what this stream is made of. */
  readonly countable: boolean
  /** Whether a successful end must bring a usage that only counting can give. */
  readonly wantsCount: boolean
  /** The last frames of a successful stream: usage, once, and the end marker. */
  closing(counted: TokenUsage | null): Uint8Array
  /** An error in mid-stream, in the protocol's own dialect. */
  errorFrame(error: GatewayError, requestId: string, dialect: ErrorDialect): Uint8Array
}
