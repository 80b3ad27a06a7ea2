import { nothingMeasured } from "../core/measured.ts"
import { chargeFor } from "../core/price.ts"
import type { VideoJob } from "../core/video-job.ts"
import { completeJob, failJob } from "../store/job-settlement.ts"
import { Forbidden } from "../upstream/guard.ts"
import { openResult } from "../upstream/result.ts"
import { lengthOf, type VideoLength } from "./length.ts"
import type { Sight } from "./look.ts"
import { mayFetchPrivate, type VideoParts } from "./parts.ts"
import { type OpenRange, resultReader } from "./result-reader.ts"
import { sideOf } from "./vendor-side.ts"

/** How long reading a result's length may take, and copying it. */
const probeMs = 20_000
const copyMs = 10 * 60_000

/** How often a result that cannot be had is looked for again before the job ends without its length or a copy. */
const mostTries = 5

type Succeeded = Extract<Sight, { kind: "succeeded" }>
type Failed = Extract<Sight, { kind: "failed" }>

/** `again`: not now; the job is looked at once more later. */
export type Finished = { readonly kind: "over" } | { readonly kind: "again"; readonly trouble: string }

/**
 * Ends a job that its vendor calls done: its length is made sure of, it is charged and completed in one transaction.
 * `tries`: how often this did not go before.
 */
export async function finish(
  job: VideoJob,
  sight: Succeeded,
  house: VideoParts,
  stop: AbortSignal,
  tries: number,
): Promise<Finished> {
  const open = opener(job, sight, house)
  const { length, isUnread } = await measured(job, sight, (range) =>
    open(range, AbortSignal.any([stop, AbortSignal.timeout(probeMs)])),
  )
  // An instance that ends breaks off its reading; that is nobody's fifth try.
  const mayTryAgain = tries < mostTries || stop.aborted
  if ((isUnread || length === null) && mayTryAgain)
    return { kind: "again", trouble: "the length of the video cannot be read" }
  const kept = await copied(job, house, () => open(null, AbortSignal.any([stop, AbortSignal.timeout(copyMs)])))
  if (typeof kept === "string" && mayTryAgain) return { kind: "again", trouble: `the result cannot be copied: ${kept}` }
  const microseconds = length?.microseconds ?? null
  const written = await completeJob(house.store, {
    id: job.id,
    fence: job.fence,
    finishedAt: Date.now(),
    resultUrl: sight.url,
    needsCredential: sight.needsCredential ?? false,
    kept: kept === true,
    microseconds,
    secondsSource: length?.source ?? null,
    charge: chargeFor(house.charges ? job.tariff : { ...job.tariff, price: "free" }, {
      ...nothingMeasured,
      microseconds,
    }),
  })
  if (written === "settled") {
    house.balanceChanged(job.accountId)
    house.events.jobEnded({ id: job.id, vendor: job.route.vendor, state: "completed", error: null })
  }
  return { kind: "over" }
}

interface Measured {
  readonly length: VideoLength | null
  /** The file that would tell the length is not to be had just now. */
  readonly isUnread: boolean
}

async function measured(job: VideoJob, sight: Succeeded, open: OpenRange): Promise<Measured> {
  let isUnread = false
  const read = resultReader(async (range) => {
    const response = await open(range)
    isUnread = response.status >= 400 && response.status !== 416
    return response
  })
  const known = { reported: sight.seconds, sentSeconds: job.route.sentSeconds }
  const length = await lengthOf(known, async (start, bytes) => {
    try {
      return await read(start, bytes)
    } catch (error) {
      // An address that may not be fetched now never may.
      isUnread = !(error instanceof Forbidden)
      throw error
    }
  })
  return { length, isUnread: isUnread && length?.source !== "probed" }
}

type Open = (range: string | null, signal: AbortSignal) => Promise<Response>

function opener(job: VideoJob, { url: address, needsCredential }: Succeeded, house: VideoParts): Open {
  const side = needsCredential ? sideOf(job, house) : null
  return (range, signal) =>
    openResult({
      address,
      method: "GET",
      range,
      credential: (url) => side?.credentialFor(url.href) ?? null,
      allowPrivate: mayFetchPrivate(house),
      // A result behind the credential is one more call of the vendor's own API.
      ...(needsCredential ? { home: job.route.baseUrl } : {}),
      signal,
    })
}

/** Whether a copy is kept; why not, where one should be and cannot be made. What the caller has deleted is not kept. */
async function copied(
  job: VideoJob,
  { results }: VideoParts,
  open: () => Promise<Response>,
): Promise<boolean | string> {
  if (results === null || job.hidden) return false
  try {
    const response = await open()
    if (!response.ok || response.body === null) throw new Error(`the result's address answers ${response.status}`)
    await results.put(job.id, response.body, response.headers.get("content-type") ?? "video/mp4")
    return true
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Ends a job that failed; nothing is charged. */
export async function fail(job: VideoJob, sight: Failed, house: VideoParts): Promise<void> {
  const { id, fence, route } = job
  const written = await failJob(house.store, {
    id,
    fence,
    finishedAt: Date.now(),
    error: sight.reason,
    trouble: sight.trouble,
  })
  if (written === "settled") house.events.jobEnded({ id, vendor: route.vendor, state: "failed", error: sight.reason })
}
