import type { Books, FoundRequest } from "../store/reconcile-reads.ts"
import { accountPlace, type Difference, inPages, type Report, rowsAtOnce } from "./differences.ts"
import { wrongCharge } from "./reconcile-charges.ts"
import type { ExpectedUsage } from "./reconcile-usage.ts"

/** Checks every request that is kept against its charge in the ledger; returns how many there are. */
export async function reconcileRequests(books: Books, usage: ExpectedUsage, report: Report): Promise<number> {
  let requests = 0
  for await (const page of inPages(books.requests(), rowsAtOnce)) {
    const charges = await books.chargesAmong(page.map(({ id }) => id))
    const byRequest = Map.groupBy(charges, ({ reference }) => reference)
    for (const request of page) {
      const place = () => `${accountPlace(books, request.accountId)}, request ${JSON.stringify(request.id)}`
      report(place, unreadable(request))
      report(place, wrongCharge(books, request, byRequest.get(request.id) ?? []))
    }
    usage.addRequests(page)
    requests += page.length
  }
  return requests
}

function unreadable({ unreadable: why }: FoundRequest): Difference | null {
  return why === undefined ? null : { expected: "what was measured", found: `some that cannot be read (${why})` }
}
