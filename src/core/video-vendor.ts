import type { JsonObject, JsonValue } from "./json.ts"
import type { Reply, VendorCall, VendorContext } from "./vendor-job.ts"

/** A video request in the gateway's own terms. */
export interface VideoAsk {
  readonly prompt: string
  readonly size: { readonly width: number; readonly height: number } | null
  /** Whole seconds; null where the caller said nothing. */
  readonly duration: number | null
  /** The picture to begin with; null: text-to-video. */
  readonly image: VideoImage | null
  /** The caller's other fields, to be passed on as the vendor's own parameters. */
  readonly extra: JsonObject
}

/** A picture in the way the vendor takes it: by address only where its adapter says that it does. */
export type VideoImage =
  | { readonly url: string }
  /** `base64` without any prefix. */
  | { readonly mediaType: string; readonly base64: string }

export interface VideoContext extends VendorContext {
  /** The gateway's own job id, for vendors that keep a caller's id. */
  readonly jobId: string
  /** Whether the job begins with a picture, for vendors that keep such jobs at a path of their own; absent: it does not. */
  readonly withImage?: boolean
}

/** A submit as it will be sent. */
export interface VideoSubmit {
  readonly call: VendorCall
  /** The length that the call asks for, defaults filled in; null where the vendor takes none. */
  readonly seconds: number | null
}

export type VideoSubmitted =
  /** `ref` is all that is needed to ask after the job, the vendor's id for people among it. */
  | { readonly kind: "accepted"; readonly ref: JsonValue; readonly vendorId: string }
  /** Certainly not accepted. `status` is the HTTP status it amounts to, where the vendor says it inside a 200 or by another number. */
  | { readonly kind: "refused"; readonly status: number; readonly message: string }
  /** Nobody can tell whether there is a job now: it is never sent again. */
  | { readonly kind: "unreadable"; readonly why: string }

export type VideoProgress =
  | { readonly kind: "queued" }
  /** `oddWord`: a status word nobody has told us about; the job is taken to go on. */
  | { readonly kind: "running"; readonly oddWord?: string }
  /** The job goes on under another reference, to be asked at once: some vendors hand over the result in a call of its own. */
  | { readonly kind: "continue"; readonly ref: JsonValue }
  | {
      readonly kind: "succeeded"
      readonly url: string
      /** The address opens only with the upstream's credential. */
      readonly needsCredential?: true
      /** The length that the vendor reports; null where it does not. */
      readonly seconds: number | null
    }
  /** The vendor's verdict: moderation, bad input, a failed run, expired, cancelled. */
  | { readonly kind: "failed"; readonly reason: string }
  /** The vendor does not know the job: a verdict only if it stays so. */
  | { readonly kind: "missing"; readonly why: string }
  /** Not a verdict; asked again. */
  | { readonly kind: "unreadable"; readonly why: string }

/** What a lookup by the gateway's own job id found, after a submit whose outcome nobody knows. */
export type VideoLookup =
  | { readonly kind: "found"; readonly ref: JsonValue; readonly vendorId: string }
  | { readonly kind: "absent" }
  | { readonly kind: "unreadable"; readonly why: string }

/** A vendor of videos. Pure: builds calls and reads replies; someone else does HTTP, time and money. */
export interface VideoVendor {
  /** The preset's name. */
  readonly vendor: string
  /** Hosts besides the upstream's own that its replies may point to and that may see the credential; `*.` stands for any below. */
  readonly hosts: readonly string[]
  /** The vendor asks not to be polled more often. */
  readonly leastPollMs?: number
  /** How a picture may reach the vendor; where an address may not, the gateway fetches it first. */
  readonly images: { readonly byUrl: boolean; readonly byData: boolean }
  /** Throws a GatewayError (invalid_parameter) that lists what the model takes, where it cannot take what was asked. */
  submit(ask: VideoAsk, context: VideoContext): VideoSubmit
  /** Called for every reply, whatever its status. */
  readSubmit(reply: Reply, context: VideoContext): VideoSubmitted
  poll(ref: JsonValue, context: VideoContext): VendorCall
  /** Called for every reply, whatever its status. */
  readPoll(reply: Reply, ref: JsonValue, context: VideoContext): VideoProgress
  /** Both or neither: finds a job by the gateway's own id. */
  locate?(context: VideoContext): VendorCall
  readLocate?(reply: Reply, context: VideoContext): VideoLookup
  cancel?(ref: JsonValue, context: VideoContext): VendorCall
  /** A credential as the vendor wants it at this moment (Unix milliseconds), where that is not the configured text itself. */
  sign?(credential: string, now: number): string
}
