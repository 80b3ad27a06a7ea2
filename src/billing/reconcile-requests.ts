import { dollarsOf } from "../lib/money.ts"
import type { Books, FoundRequest, PostedCharge } from "../store/reconcile-reads.ts"
import { accountPlace, type Difference, inPages, type Report, rowsAtOnce } from "./differences.ts"
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

function wrongCharge(
  books: Books,
  { charge, accountId }: FoundRequest,
  lines: readonly PostedCharge[],
): Difference | null {
  if (charge < 0n) return { expected: "a charge not below 0", found: dollarsOf(charge) }
  const [line, ...more] = lines
  if (charge === 0n) {
    if (line === undefined) return null
    return { expected: "no ledger line, because it is not charged", found: described(books, lines) }
  }
  if (line?.accountId === accountId && line.amount === -charge && more.length === 0) return null
  const expected = `one ledger line of ${dollarsOf(-charge)} on ${accountPlace(books, accountId)}`
  return { expected, found: described(books, lines) }
}

function described(books: Books, lines: readonly PostedCharge[]): string {
  const each = lines.map(
    ({ id, amount, accountId }) => `line ${id} of ${dollarsOf(amount)} on ${accountPlace(books, accountId)}`,
  )
  return each.join(" and ") || "none"
}
