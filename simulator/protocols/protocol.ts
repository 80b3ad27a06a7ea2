import type { Behaviour, Fault } from "../behaviour.ts"
import type { VendorMemory } from "../memory.ts"
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
  /** What the vendor knows from one call to the next. */
  readonly memory: VendorMemory
}

/** One endpoint of a vendor, recognised by how the path ends, since vendors differ in what stands before. */
export interface Protocol {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE"
  /** A pattern is held against the path after the vendor's name. */
  readonly ending: string | RegExp
  /** Where the path alone does not tell whose it is. */
  isFor?(request: VendorRequest): boolean
  /** True where the real one asks for no credential. */
  readonly open?: boolean
  /** The key where this endpoint looks for it, and nowhere else: undefined is a 401. Otherwise a key may stand anywhere, or be missing. */
  credential?(request: VendorRequest, expected: string | null): string | undefined
  /** Its 401, where that is more than `refuse` can say. */
  unauthorized?(request: VendorRequest): Reply
  /** The healthy answer. A step made for another protocol counts as plain healthy. */
  answer(request: VendorRequest, step: Behaviour): Reply
  /** An error in the protocol's own words; OpenAI's otherwise. */
  refuse?(status: number, message?: string): Reply
  /** What an earlier step has decided for this call in place of the answer. */
  instead?(request: VendorRequest): Fault | undefined
}

/** Path after the vendor's name, without the query. */
export function pathOf({ path, vendor }: Pick<VendorRequest, "path" | "vendor">): string {
  return (path.split("?", 1)[0] ?? "").slice(vendor.length + 1)
}
