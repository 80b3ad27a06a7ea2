import { dollarsOf } from "../lib/money.ts"
import type { Books, PostedCharge } from "../store/reconcile-reads.ts"
import { accountPlace, type Difference } from "./differences.ts"

/** A request or a video job. */
interface Charged {
  readonly accountId: string
  readonly charge: bigint
}

/** What was charged for has one ledger line of its charge on its account; none where that is nothing. */
export function wrongCharge(
  books: Books,
  { charge, accountId }: Charged,
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
