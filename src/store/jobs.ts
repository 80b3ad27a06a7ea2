import { type Selectable, sql } from "kysely"
import type { JsonValue } from "../core/json.ts"
import type { AttemptRecord } from "../core/story.ts"
import type { JobRoute, VideoJob } from "../core/video-job.ts"
import { readAttempts, readPrice, readTariff, writeAttempts, writeTariff } from "./record-json.ts"
import { flag, milliseconds } from "./save.ts"
import type { Reader, Tables } from "./schema.ts"

/** A job as it is written down before anybody is asked to make it. */
export type NewJob = Pick<
  VideoJob,
  | "id"
  | "accountId"
  | "keyId"
  | "keyName"
  | "requestId"
  | "model"
  | "withImage"
  | "tariff"
  | "route"
  | "attempts"
  | "createdAt"
  | "nextLookAt"
>

/** Writes a job down as `submitting`, claimed with fence 1 by whoever is about to submit it. */
export async function insertJob(
  db: Reader,
  job: NewJob,
  claim: { readonly owner: string; readonly leaseUntil: number },
): Promise<void> {
  await db
    .insertInto("jobs")
    .values({
      id: job.id,
      state: "submitting",
      next_look_at: milliseconds(job.nextLookAt),
      lease_until: milliseconds(claim.leaseUntil),
      lease_owner: claim.owner,
      fence: 1n,
      account_id: job.accountId,
      created_at: milliseconds(job.createdAt),
      key_id: job.keyId,
      key_name: job.keyName,
      request_id: job.requestId,
      model: job.model,
      with_image: flag(job.withImage),
      ...routeColumns(job.route),
      tariff: writeTariff(job.tariff),
      attempts: writeAttempts(job.attempts),
    })
    .execute()
}

/*
 * What the one who submits a job writes of it. Each says whether it was written: not where the claim is lost, or the job
 * is no longer `submitting`.
 */

/** Sends the job another way. */
export function moveJob(
  db: Reader,
  id: string,
  fence: number,
  route: JobRoute,
  attempts: readonly AttemptRecord[],
): Promise<boolean> {
  return whileSubmitting(db, id, fence, { ...routeColumns(route), attempts: writeAttempts(attempts) })
}

export interface Acceptance {
  readonly ref: JsonValue
  readonly vendorId: string | null
  readonly route: JobRoute
  readonly attempts: readonly AttemptRecord[]
  readonly submittedAt: number
  readonly nextLookAt: number
}

/** The vendor has taken the job: it is `queued`, and anybody may look after it. */
export function acceptJob(db: Reader, id: string, fence: number, accepted: Acceptance): Promise<boolean> {
  return whileSubmitting(db, id, fence, {
    ...unclaimed,
    ...routeColumns(accepted.route),
    state: "queued",
    ref: writeRef(accepted.ref),
    vendor_id: plainText(accepted.vendorId),
    attempts: writeAttempts(accepted.attempts),
    submitted_at: milliseconds(accepted.submittedAt),
    next_look_at: milliseconds(accepted.nextLookAt),
  })
}

export interface Doubt {
  readonly nextLookAt: number
  readonly trouble: string
  readonly attempts: readonly AttemptRecord[]
}

/** Nobody knows whether the vendor has taken the job: it stays `submitting` for someone to find out. */
export function leaveInDoubt(db: Reader, id: string, fence: number, doubt: Doubt): Promise<boolean> {
  return whileSubmitting(db, id, fence, {
    ...unclaimed,
    next_look_at: milliseconds(doubt.nextLookAt),
    trouble: plainText(doubt.trouble),
    attempts: writeAttempts(doubt.attempts),
  })
}

/** Forgets a job that certainly nobody has taken. */
export async function dropJob(db: Reader, id: string, fence: number): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom("jobs")
    .where("id", "=", id)
    .where("fence", "=", BigInt(fence))
    .where("state", "=", "submitting")
    .executeTakeFirst()
  return numDeletedRows === 1n
}

/** Vendors renew the addresses of their results. False where the job is not `completed`. */
export async function refreshResult(db: Reader, id: string, url: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("jobs")
    .set({ result_url: plainText(url) })
    .where("id", "=", id)
    .where("state", "=", "completed")
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

export type JobRow = Selectable<Tables["jobs"]>

async function whileSubmitting(db: Reader, id: string, fence: number, changes: Partial<JobRow>): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("jobs")
    .set(changes)
    .where("id", "=", id)
    .where("fence", "=", BigInt(fence))
    .where("state", "=", "submitting")
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Said in the words of the index of due jobs, or it is not used. */
export const isOpen = sql<boolean>`jobs.state not in ('completed', 'failed')`

export const unclaimed = { lease_until: null, lease_owner: null } as const

function routeColumns(route: JobRoute) {
  return {
    upstream_id: route.upstreamId,
    upstream: route.upstream,
    vendor: route.vendor,
    upstream_model: route.upstreamModel,
    base_url: route.baseUrl,
    credential_digest: route.credentialDigest,
    sent_seconds: route.sentSeconds === null ? null : BigInt(route.sentSeconds),
  }
}

export function writeRef(ref: JsonValue): string | null {
  return ref === null ? null : JSON.stringify(ref)
}

/** Vendors may write anything; the one character that Postgres keeps in no text must not hold up a job. */
export function plainText<T extends string | null>(text: T): T | string {
  return text === null ? text : text.replaceAll("\0", "")
}

export function jobOf(row: JobRow): VideoJob {
  return {
    id: row.id,
    accountId: row.account_id,
    keyId: row.key_id,
    keyName: row.key_name,
    requestId: row.request_id,
    model: row.model,
    withImage: row.with_image === 1n,
    tariff: readTariff(row.tariff),
    state: row.state,
    route: routeOf(row),
    ref: row.ref === null ? null : JSON.parse(row.ref),
    vendorId: row.vendor_id,
    attempts: readAttempts(row.attempts),
    createdAt: Number(row.created_at),
    submittedAt: numberOf(row.submitted_at),
    finishedAt: numberOf(row.finished_at),
    polls: Number(row.polls),
    lastLookAt: numberOf(row.last_look_at),
    nextLookAt: Number(row.next_look_at),
    missingSince: numberOf(row.missing_since),
    trouble: row.trouble,
    error: row.error,
    resultUrl: row.result_url,
    resultNeedsCredential: row.result_needs_credential === 1n,
    resultKept: row.result_kept === 1n,
    microseconds: numberOf(row.microseconds),
    secondsSource: row.seconds_source,
    price: row.price === null ? null : readPrice(row.price),
    charge: row.charge,
    hidden: row.hidden === 1n,
    fence: Number(row.fence),
  }
}

function routeOf(row: JobRow): JobRoute {
  return {
    upstreamId: row.upstream_id,
    upstream: row.upstream,
    vendor: row.vendor,
    upstreamModel: row.upstream_model,
    baseUrl: row.base_url,
    credentialDigest: row.credential_digest,
    sentSeconds: numberOf(row.sent_seconds),
  }
}

function numberOf(value: bigint | null): number | null {
  return value === null ? null : Number(value)
}
