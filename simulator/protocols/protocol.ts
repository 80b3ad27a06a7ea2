import type { Behaviour } from "../behaviour.ts"
import type { Reply } from "../wire/reply.ts"
import type { HeaderPair } from "../wire/request-parser.ts"

/** A complete request to one vendor. */
export interface VendorRequest {
  readonly vendor: string
  /** What the vendor says it serves. */
  readonly models: readonly string[]
  readonly method: string
  /** Path and query, the vendor's name included. */
  readonly path: string
  readonly headers: readonly HeaderPair[]
  readonly body: Uint8Array
}

/** One endpoint of a vendor, recognised by how the path ends, since vendors differ in what stands before. */
export interface Protocol {
  readonly method: "GET" | "POST"
  readonly ending: string
  /** The healthy answer. A step made for another protocol counts as plain healthy. */
  answer(request: VendorRequest, step: Behaviour): Reply
}
