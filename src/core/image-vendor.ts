import type { JsonObject, JsonValue } from "./json.ts"
import type { Reply, VendorCall, VendorContext } from "./vendor-job.ts"

/** An image request in the gateway's own terms. */
export interface ImageAsk {
  readonly prompt: string
  /** How many images; 1 where the caller said nothing. */
  readonly count: number
  /** Null where the caller said nothing or `auto`. */
  readonly size: { readonly width: number; readonly height: number } | null
  /** The caller's other fields, to be passed on as the vendor's own parameters. */
  readonly extra: JsonObject
}

/** A picture as a vendor hands it over. */
export type ImageResult = { readonly url: string } | { readonly base64: string }

export type ImageSubmitted =
  | { readonly kind: "accepted"; readonly ref: JsonValue }
  | { readonly kind: "succeeded"; readonly images: readonly ImageResult[] }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "unreadable"; readonly why: string }

export type ImageProgress =
  | { readonly kind: "waiting" }
  /** The job goes on under another reference, to be polled at once: the vendor hands over its result in a call of its own. */
  | { readonly kind: "continue"; readonly ref: JsonValue }
  | { readonly kind: "succeeded"; readonly images: readonly ImageResult[] }
  /** The vendor's verdict: moderation, bad input, a failed run. */
  | { readonly kind: "failed"; readonly reason: string }
  /** Not a verdict; asked again. */
  | { readonly kind: "unreadable"; readonly why: string }

/** A vendor whose images are jobs. Pure: builds calls and reads replies; someone else does HTTP, time and money. */
export interface ImageVendor {
  readonly vendor: string
  /** Hosts besides the upstream's own that its replies may point to and that may see the credential; `*.` stands for any below. */
  readonly hosts: readonly string[]
  /** Throws a GatewayError (invalid_parameter) that lists what the vendor takes, where it cannot take what was asked. */
  submit(ask: ImageAsk, context: VendorContext): VendorCall
  /** Called for 2xx replies only; error statuses are the engine's. */
  readSubmit(reply: Reply): ImageSubmitted
  poll(ref: JsonValue, context: VendorContext): VendorCall
  /** Called for every reply, whatever its status: with some vendors an error status is the job's own verdict. Others are "unreadable". */
  readPoll(reply: Reply, ref: JsonValue): ImageProgress
  cancel?(ref: JsonValue, context: VendorContext): VendorCall
}
