import type { Books } from "../store/reconcile-reads.ts"
import type { Report } from "./differences.ts"
import { reconcileJobs } from "./reconcile-jobs.ts"
import { reconcileLines } from "./reconcile-lines.ts"
import { reconcileRequests } from "./reconcile-requests.ts"
import { expectedUsage, reconcileUsage } from "./reconcile-usage.ts"

/** How much was looked at, and how often it was not as it should be. */
export interface Reconciled {
  readonly accounts: number
  readonly lines: number
  readonly requests: number
  readonly jobs: number
  readonly hours: number
  readonly differences: number
}

/**
 * Adds everything up again from the ledger's lines, the requests that are kept and the video jobs, and tells each
 * difference in a line.
 * In memory at any time: the accounts' names, some hundred rows, and one sum for each row of the roll-up by hours.
 */
export async function reconcile(books: Books, tell: (difference: string) => void): Promise<Reconciled> {
  let differences = 0
  const report: Report = (place, difference) => {
    if (difference === null) return
    differences += 1
    tell(`${place()}: expected ${difference.expected}, found ${difference.found}`)
  }
  const usage = expectedUsage()
  const lines = await reconcileLines(books, usage, report)
  const requests = await reconcileRequests(books, usage, report)
  const jobs = await reconcileJobs(books, report)
  const hours = await reconcileUsage(books, usage, report)
  return { accounts: books.accounts.size, lines, requests, jobs, hours, differences }
}
