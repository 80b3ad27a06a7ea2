import type { HeaderPair } from "./wire/request-parser.ts"

/** One request as it arrived, and what became of it; a live object, kept up to date until it has ended. */
export interface RecordedCall {
  readonly method: string
  /** Path and query, as they came. */
  readonly path: string
  /** Raw pairs: order and case kept. */
  readonly headers: readonly HeaderPair[]
  /** Exact bytes, complete when `bodyComplete`; empty where the vendor does not keep bodies. */
  readonly body: Uint8Array
  readonly bodyLength: number
  /** Hexadecimal; empty until the body is complete. */
  readonly bodySha256: string
  readonly bodyComplete: boolean
  /** What it was answered with: a behaviour's kind, `unauthorized` or `down`; empty until the body is complete. */
  readonly answeredWith: string
  /** `performance.now()` when the head had arrived. */
  readonly at: number
  /** `performance.now()` when the call ended, either way; null while it is open. */
  readonly endedAt: number | null
  /** Bytes of the answer that the kernel has taken. */
  readonly bytesSent: number
  /** The answer was carried out in full, a told cut or reset included. */
  readonly finished: boolean
  /** The client went away before the answer was finished. */
  readonly closedByPeer: boolean
  readonly connection: ConnectionFacts
  /** Which request of its connection the call is, from 1. */
  readonly requestOnConnection: number
}

export interface ConnectionFacts {
  readonly id: number
  /** `performance.now()` when it was accepted. */
  readonly openedAt: number
  /** True until the TCP connection is over. */
  readonly open: boolean
}

/** A call as plain JSON data, its body in base64. */
export function callAsJson(call: RecordedCall): object {
  return { ...call, body: Buffer.from(call.body).toString("base64") }
}
