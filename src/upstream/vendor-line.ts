import type { VendorCall } from "../core/vendor-job.ts"
import { callVendor, type VendorReply } from "./client.ts"
import { refusePrivate } from "./guard.ts"
import { strangerHeaders } from "./headers.ts"

export interface LineParts {
  /** With the credential. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether the credential may go to an address, which may have come out of a reply. */
  carries(address: string): boolean
  readonly allowPrivate: boolean
}

export type VendorLine = (
  call: VendorCall,
  signal: AbortSignal,
  options?: { readonly once?: boolean },
) => Promise<VendorReply>

/** A way to call one vendor with one credential, which is sent nowhere else. */
export function vendorLine({ headers, carries, allowPrivate }: LineParts): VendorLine {
  return async (call, signal, options = {}) => {
    if (carries(call.url)) return callVendor(call, headers, signal, options)
    // An address out of a reply that is not known to be the vendor's: nothing of ours goes there, and nothing inside is asked.
    const [address] = await refusePrivate(new URL(call.url), allowPrivate)
    return callVendor(call, strangerHeaders, signal, { ...options, ...(address === undefined ? {} : { address }) })
  }
}
