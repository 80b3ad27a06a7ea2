import { nothingMeasured } from "../core/measured.ts"
import type { Charge } from "../core/price.ts"
import type { SecondsSource } from "../core/video-job.ts"
import type { Store } from "./db.ts"
import { isOpen, type JobRow, plainText, unclaimed } from "./jobs.ts"
import { balanceAfterCharge, balanceOf, jobReference } from "./ledger.ts"
import { writeMeasured, writePrice } from "./record-json.ts"
import { addUsage, videoSums } from "./rollup.ts"
import { flag, locksRows, milliseconds } from "./save.ts"
import type { Reader, Writer } from "./schema.ts"
import { transactTogether, writeTogether } from "./shared-commits.ts"

/** `lost`: the job was claimed by another meanwhile or is over, and nothing was written. */
export type Settling = "settled" | "lost"

export interface Completion {
  readonly id: string
  readonly fence: number
  readonly finishedAt: number
  readonly resultUrl: string
  readonly needsCredential: boolean
  /** A copy is kept under the job's id. */
  readonly kept: boolean
  /** Null, with its source, where nobody knows the length. */
  readonly microseconds: number | null
  readonly secondsSource: SecondsSource | null
  readonly charge: Charge
}

/** Ends a job well and charges it, both or neither, however many try. */
export function completeJob(store: Store, completion: Completion): Promise<Settling> {
  const { microseconds, charge } = completion
  return transactTogether(store, async (trx) => {
    const job = await endJob(trx, completion, {
      state: "completed",
      trouble: null,
      result_url: plainText(completion.resultUrl),
      result_needs_credential: flag(completion.needsCredential),
      result_kept: flag(completion.kept),
      microseconds: microseconds === null ? null : BigInt(microseconds),
      seconds_source: completion.secondsSource,
      price: writePrice(charge.price),
      charge: charge.amount,
    })
    if (job === undefined) return "lost"
    if (charge.amount !== 0n) await postCharge(trx, job, completion)
    return "settled"
  })
}

export interface JobFailure {
  readonly id: string
  readonly fence: number
  readonly finishedAt: number
  /** What the caller is told. */
  readonly error: string
  readonly trouble: string | null
}

/** Ends a job badly, which costs nothing. */
export async function failJob(store: Store, failure: JobFailure): Promise<Settling> {
  const { error, trouble } = failure
  const changes = { state: "failed", error: plainText(error), trouble: plainText(trouble) } as const
  const job = await writeTogether(store, (db) => endJob(db, failure, changes))
  return job === undefined ? "lost" : "settled"
}

type Verdict = Pick<Completion, "id" | "fence" | "finishedAt">

/** A job ends once: a verdict under an old claim, or after another verdict, changes nothing. */
function endJob(db: Reader, { id, fence, finishedAt }: Verdict, changes: Partial<JobRow>) {
  return db
    .updateTable("jobs")
    .set({ ...changes, ...unclaimed, finished_at: milliseconds(finishedAt), missing_since: null })
    .where("id", "=", id)
    .where("fence", "=", BigInt(fence))
    .where(isOpen)
    .returning(["id", "account_id", "model", "upstream"])
    .executeTakeFirst()
}

type EndedJob = Pick<JobRow, "id" | "account_id" | "model" | "upstream">

/** Locks in the order of everyone who posts charges: the account, then the roll-ups; nobody has an account and waits for a job. */
async function postCharge(trx: Writer, job: EndedJob, completion: Completion): Promise<void> {
  const { account_id: accountId, model, upstream } = job
  const { finishedAt, microseconds, charge } = completion
  if (locksRows(trx)) await lockAccount(trx, accountId)
  const balance = await balanceOf(trx, accountId)
  await trx
    .insertInto("ledger")
    .values({
      account_id: accountId,
      kind: "charge",
      amount: -charge.amount,
      balance_after: balanceAfterCharge(`video job ${job.id}`, balance, charge.amount),
      reference: jobReference(job.id),
      note: null,
      measured: measuredOf(job, completion),
      price: writePrice(charge.price),
      estimated: flag(isEstimated(completion)),
      created_at: milliseconds(finishedAt),
    })
    .execute()
  const video = { accountId, model, upstream, finishedAt, microseconds, charge: charge.amount }
  await addUsage(trx, "hour", [videoSums("hour", video)])
  await addUsage(trx, "day", [videoSums("day", video)])
}

async function lockAccount(trx: Writer, id: string): Promise<void> {
  await trx.selectFrom("accounts").select("id").where("id", "=", id).forNoKeyUpdate().executeTakeFirstOrThrow()
}

function measuredOf({ model, upstream }: EndedJob, { microseconds, secondsSource }: Completion): string {
  return writeMeasured({
    model,
    upstream,
    endpoint: "video",
    measured: { ...nothingMeasured, microseconds },
    secondsSource: secondsSource ?? undefined,
  })
}

/** As everywhere in the books: something that it is charged by was not said by the upstream. */
function isEstimated({ charge, secondsSource }: Completion): boolean {
  return charge.price.units.second !== undefined && secondsSource !== "reported"
}
