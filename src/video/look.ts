import type { JsonValue } from "../core/json.ts"
import type { VideoJob } from "../core/video-job.ts"
import type { VideoProgress } from "../core/video-vendor.ts"
import { Forbidden } from "../upstream/guard.ts"
import type { VideoParts } from "./parts.ts"
import { sideOf, type VendorSide } from "./vendor-side.ts"

/** How long the vendor may take to answer one question. */
const askMs = 15_000

/** How often a job may go on under another reference within one look. */
const mostHops = 5

/** How long a vendor that knows no such job is asked again before that is its word. */
const missingMs = 10 * 60_000

/** A job that its vendor cannot find may merely be new there; after this long it never arrived. */
const arrivalMs = 60_000

/** Without a verdict for this long, a job has failed. */
export const longestJobMs = 24 * 3_600_000

/** What a look at a job found. */
export type Sight =
  | {
      readonly kind: "goes_on"
      readonly state: "queued" | "in_progress"
      readonly ref?: JsonValue
      readonly vendorId?: string
      readonly trouble: string | null
      readonly missingSince: number | null
    }
  | Extract<VideoProgress, { kind: "succeeded" }>
  | { readonly kind: "failed"; readonly reason: string; readonly trouble: string | null }

/** Asks the vendor after a job once. Trouble on the way is no verdict; it never throws. */
export async function lookAt(job: VideoJob, house: VideoParts, stop: AbortSignal): Promise<Sight> {
  const side = sideOf(job, house)
  const sight =
    side === null
      ? troubled(job, `the upstream "${job.route.upstream}" is not there any more`)
      : await (job.ref === null ? locate(job, side, stop) : poll(job, side, house, stop))
  const clean = side === null ? sight : withoutSecrets(sight, side)
  if (clean.kind !== "goes_on" || Date.now() - job.createdAt <= longestJobMs) return clean
  return { kind: "failed", reason: "the vendor gave no verdict within 24 hours", trouble: clean.trouble }
}

/** Vendors repeat what they were sent in their error texts. */
function withoutSecrets(sight: Sight, { blank }: VendorSide): Sight {
  if (sight.kind === "succeeded") return sight
  const trouble = sight.trouble === null ? null : blank(sight.trouble)
  return sight.kind === "failed" ? { ...sight, reason: blank(sight.reason), trouble } : { ...sight, trouble }
}

async function poll(job: VideoJob, side: VendorSide, house: VideoParts, stop: AbortSignal): Promise<Sight> {
  const { vendor, context } = side
  let ref = job.ref
  for (let hop = 0; hop < mostHops; hop++) {
    const progress = await asked(side, stop, vendor.poll(ref, context), (reply) => vendor.readPoll(reply, ref, context))
    if (progress.kind !== "continue") return sightOf(progress, job, ref, house)
    ref = progress.ref
  }
  return { ...troubled(job, "the vendor sends from one reference to the next"), ref }
}

type Answered<T> = T | { readonly kind: "unreadable"; readonly why: string }

async function asked<T>(
  side: VendorSide,
  stop: AbortSignal,
  call: Parameters<VendorSide["call"]>[0],
  read: (reply: Awaited<ReturnType<VendorSide["call"]>>["reply"]) => T,
): Promise<Answered<T>> {
  try {
    return read((await side.call(call, AbortSignal.any([stop, AbortSignal.timeout(askMs)]))).reply)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { kind: "unreadable", why: error instanceof Forbidden ? `the vendor points to ${why}` : why }
  }
}

function sightOf(
  progress: Exclude<VideoProgress, { kind: "continue" }>,
  job: VideoJob,
  ref: JsonValue,
  house: VideoParts,
): Sight {
  const moved = ref === job.ref ? {} : { ref }
  switch (progress.kind) {
    case "succeeded":
      return progress
    case "failed":
      return { kind: "failed", reason: progress.reason, trouble: null }
    case "queued":
      return { kind: "goes_on", state: "queued", ...moved, trouble: null, missingSince: null }
    case "running":
      if (progress.oddWord !== undefined) house.events.oddJobStatus(job.route.vendor, progress.oddWord)
      return { kind: "goes_on", state: "in_progress", ...moved, trouble: oddText(progress.oddWord), missingSince: null }
    case "unreadable":
      return { ...troubled(job, progress.why), ...moved }
    case "missing": {
      const missingSince = job.missingSince ?? Date.now()
      if (Date.now() - missingSince > missingMs)
        return { kind: "failed", reason: "the vendor does not know the job any more", trouble: progress.why }
      return { ...troubled(job, progress.why), missingSince }
    }
  }
}

/** A submit whose outcome nobody knows: the vendor is asked for the job by our own id. */
async function locate(job: VideoJob, side: VendorSide, stop: AbortSignal): Promise<Sight> {
  const { vendor, context } = side
  if (vendor.locate === undefined || vendor.readLocate === undefined) return neverKnown(job)
  const read = vendor.readLocate
  const found = await asked(side, stop, vendor.locate(context), (reply) => read(reply, context))
  if (found.kind === "found") {
    const { ref, vendorId } = found
    return { kind: "goes_on", state: "queued", ref, vendorId, trouble: null, missingSince: null }
  }
  if (found.kind === "unreadable") return troubled(job, found.why)
  if (Date.now() - job.createdAt > arrivalMs)
    return { kind: "failed", reason: "the job never reached the vendor; nothing is charged", trouble: job.trouble }
  return troubled(job, "the vendor does not have it, or not yet")
}

function neverKnown(job: VideoJob): Sight {
  const reason = "it is not known whether the vendor took the job, so it was not sent again; nothing is charged"
  return { kind: "failed", reason, trouble: job.trouble }
}

function troubled(job: VideoJob, trouble: string): Sight & { kind: "goes_on" } {
  const state = job.state === "in_progress" ? "in_progress" : "queued"
  return { kind: "goes_on", state, trouble, missingSince: job.missingSince }
}

function oddText(word: string | undefined): string | null {
  return word === undefined ? null : `unknown status ${JSON.stringify(word.slice(0, 60))}`
}
