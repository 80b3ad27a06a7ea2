import type { JobRoute, VideoJob } from "../../src/core/video-job.ts"
import { newId, newRequestId } from "../../src/lib/ids.ts"
import type { Store } from "../../src/store/db.ts"
import type { Look } from "../../src/store/job-claims.ts"
import type { Completion } from "../../src/store/job-settlement.ts"
import { acceptJob, insertJob, type NewJob } from "../../src/store/jobs.ts"
import { requestRecord } from "./records.ts"

/** When the jobs of these tests are made. */
export const start = 1_790_000_000_000

export const klingRoute: JobRoute = {
  upstreamId: "upstream-1",
  upstream: "kling-main",
  vendor: "kling",
  upstreamModel: "kling-v3",
  baseUrl: "https://api.kling.example/v1",
  credentialDigest: "0a1b",
  sentSeconds: 5,
}

/** A job as it is before it is sent, for tests to change what they are about. */
export function newJob(accountId: string, changes: Partial<NewJob> = {}): NewJob {
  return {
    id: newId(),
    accountId,
    keyId: "key-1",
    keyName: "ci",
    requestId: newRequestId(),
    model: "kling-video",
    withImage: true,
    tariff: {
      price: { second: "0.07", tiers: [{ aboveInput: 5, prices: { second: "1" } }] },
      multiplier: "1.5",
      version: 3,
    },
    route: klingRoute,
    attempts: [],
    createdAt: start,
    nextLookAt: start + 60_000,
    ...changes,
  }
}

/** What a new job is when it has been written down. */
export function submitting(job: NewJob): VideoJob {
  return {
    ...job,
    state: "submitting",
    ref: null,
    vendorId: null,
    submittedAt: null,
    finishedAt: null,
    polls: 0,
    lastLookAt: null,
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

export const submitter = { owner: "submitter", leaseUntil: start + 60_000 }

export const { attempts } = requestRecord("anyone")

/** A job that its vendor has taken; nobody has it claimed, and its fence is 1. */
export async function queuedJob(store: Store, accountId: string, changes: Partial<NewJob> = {}): Promise<NewJob> {
  const job = newJob(accountId, { nextLookAt: start, ...changes })
  await insertJob(store.db, job, submitter)
  const { route, nextLookAt } = job
  const taken = { ref: { task: job.id }, vendorId: "task-1", route, attempts, submittedAt: start, nextLookAt }
  if (!(await acceptJob(store.db, job.id, 1, taken))) throw new Error("the job was not taken")
  return job
}

export function lookAt(id: string, fence: number, changes: Partial<Look> = {}): Look {
  const quiet = { trouble: null, missingSince: null }
  return { id, fence, state: "queued", nextLookAt: start + 10_000, lookedAt: start + 5_000, ...quiet, ...changes }
}

/** Five seconds for 5. */
export function completionOf(id: string, fence: number, changes: Partial<Completion> = {}): Completion {
  return {
    id,
    fence,
    finishedAt: start + 90_000,
    resultUrl: "https://cdn.kling.example/v.mp4",
    needsCredential: false,
    kept: false,
    microseconds: 5_000_000,
    secondsSource: "reported",
    charge: { amount: 5n, price: { version: 3, multiplier: "1.5", units: { second: "0.07" } } },
    ...changes,
  }
}
