import type { Upstream } from "../core/catalog.ts"
import type { JobRoute } from "../core/video-job.ts"
import type { VideoContext, VideoVendor } from "../core/video-vendor.ts"
import { upstreamHeaders } from "../upstream/headers.ts"
import { type VendorLine, vendorLine } from "../upstream/vendor-line.ts"
import { mayCarryCredential } from "../vendors/hosts.ts"
import { videoVendors } from "../vendors/video/registry.ts"
import { mayFetchPrivate, type VideoParts } from "./parts.ts"

/** The other end of a job: its adapter, what the adapter may know, and a way to call. */
export interface VendorSide {
  readonly vendor: VideoVendor
  readonly context: VideoContext
  readonly call: VendorLine
  /** The headers that carry the credential to an address; null where it may not go there. */
  credentialFor(address: string): Record<string, string> | null
  /** The credential as it is configured and as it is sent. */
  readonly secrets: readonly string[]
  /** A text of the vendor's without our credential in it. */
  blank(text: string): string
}

const noHeaders = new Headers()

interface JobPlace {
  readonly id: string
  readonly withImage: boolean
  readonly route: JobRoute
}

/** Opens the vendor's side of a job for a submit that is about to be made with this credential. */
export function sideFor(
  { id, withImage, route }: JobPlace,
  upstream: Upstream,
  secret: string | null,
  parts: VideoParts,
  caller: Headers = noHeaders,
): VendorSide {
  const vendor = videoVendors.get(upstream.vendor.name)!
  const signed = secret === null ? null : (vendor.sign?.(secret, Date.now()) ?? secret)
  const headers = upstreamHeaders(caller, upstream, "video", signed, "application/json")
  const secrets = [secret, signed].flatMap((word) => (word === null || word === "" ? [] : [word]))
  const carries = (address: string): boolean => mayCarryCredential(address, route.baseUrl, vendor.hosts)
  return {
    vendor,
    context: {
      baseUrl: route.baseUrl,
      upstreamModel: route.upstreamModel,
      settings: upstream.settings,
      jobId: id,
      withImage,
    },
    call: vendorLine({ headers, carries, allowPrivate: mayFetchPrivate(parts) }),
    secrets,
    blank: (text) => secrets.reduce((clean, word) => clean.replaceAll(word, "***"), text),
    credentialFor: (address) => (carries(address) ? headers : null),
  }
}

/** Opens the vendor's side of a job that was sent before: as its row says, with the credential it was sent with. */
export function sideOf(job: JobPlace, parts: VideoParts): VendorSide | null {
  const upstream = [...parts.snapshot().upstreams.values()].find(({ id }) => id === job.route.upstreamId)
  if (upstream === undefined || upstream.vendor.name !== job.route.vendor) return null
  const known = upstream.credentials.find((secret) => parts.digest(secret) === job.route.credentialDigest)
  // A key that was replaced still belongs to the same customer of the vendor, most likely.
  return sideFor(job, upstream, known ?? upstream.credentials[0] ?? null, parts)
}
