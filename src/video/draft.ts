import type { Call } from "../admission/call.ts"
import type { Story } from "../core/story.ts"
import type { VideoJob } from "../core/video-job.ts"
import { newId } from "../lib/ids.ts"
import type { VideoRequest } from "./ask.ts"

/** A job that has not been given to a vendor yet. */
export type Draft = Omit<VideoJob, "route">

export function newJob({ principal, requestId }: Call, wanted: VideoRequest, { model, tariff }: Story): Draft {
  const now = Date.now()
  return {
    id: newId(),
    accountId: principal.accountId,
    keyId: principal.keyId,
    keyName: principal.keyName,
    requestId,
    model,
    withImage: wanted.image !== null,
    tariff,
    state: "submitting",
    ref: null,
    vendorId: null,
    attempts: [],
    createdAt: now,
    submittedAt: null,
    finishedAt: null,
    polls: 0,
    lastLookAt: null,
    nextLookAt: now,
    missingSince: null,
    trouble: null,
    error: null,
    resultUrl: null,
    resultNeedsCredential: false,
    resultKept: false,
    microseconds: null,
    secondsSource: null,
    price: null,
    charge: 0n,
    hidden: false,
    fence: 1,
  }
}
