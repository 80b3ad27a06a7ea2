import { dollarsOf } from "../lib/money.ts"
import { jobReference } from "../store/ledger.ts"
import type { Books, FoundJob } from "../store/reconcile-reads.ts"
import { accountPlace, type Difference, inPages, type Report, rowsAtOnce } from "./differences.ts"
import { wrongCharge } from "./reconcile-charges.ts"

/** Checks every video job against its charge in the ledger; returns how many there are. */
export async function reconcileJobs(books: Books, report: Report): Promise<number> {
  let jobs = 0
  for await (const page of inPages(books.jobs(), rowsAtOnce)) {
    // A line of a job that is not completed is told where the lines are checked.
    const completed = page.filter(({ state }) => state === "completed")
    const charges = completed.length === 0 ? [] : await books.chargesAmong(completed.map(({ id }) => jobReference(id)))
    const byReference = Map.groupBy(charges, ({ reference }) => reference)
    for (const job of page) {
      const place = () => `${accountPlace(books, job.accountId)}, video job ${JSON.stringify(job.id)}`
      if (job.state !== "completed") report(place, earlyCharge(job))
      else report(place, wrongCharge(books, job, byReference.get(jobReference(job.id)) ?? []))
    }
    jobs += page.length
  }
  return jobs
}

function earlyCharge({ state, charge }: FoundJob): Difference | null {
  return charge === 0n ? null : { expected: `no charge, because it is ${state}`, found: dollarsOf(charge) }
}
