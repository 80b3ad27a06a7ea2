import { chargeFor } from "../core/price.ts"
import { dollarsOf } from "../lib/money.ts"
import { jobIdIn } from "../store/ledger.ts"
import type { Books, FoundLine } from "../store/reconcile-reads.ts"
import type { LineKind } from "../store/schema.ts"
import { accountPlace, type Difference, inPages, isRequestReference, type Report, rowsAtOnce } from "./differences.ts"
import type { ExpectedUsage } from "./reconcile-usage.ts"

/** What the lines of one account come to so far. */
interface Chain {
  readonly accountId: string
  /** As the last line says. */
  balance: bigint
  sum: bigint
}

/** Checks every ledger line by itself, after the one before it and against its request or job; returns how many there are. */
export async function reconcileLines(books: Books, usage: ExpectedUsage, report: Report): Promise<number> {
  const endChain = (chain: Chain) => report(() => accountPlace(books, chain.accountId), wrongSum(chain))
  let lines = 0
  let chain: Chain | undefined
  for await (const page of inPages(books.lines(), rowsAtOnce)) {
    for (const line of page) {
      const place = () => placeOf(books, line)
      if (chain === undefined || chain.accountId !== line.accountId) {
        if (chain !== undefined) endChain(chain)
        chain = { accountId: line.accountId, balance: 0n, sum: 0n }
        report(place, missingAccount(books, line))
      }
      report(place, wrongSign(line))
      report(place, missingReference(line))
      report(place, wrongBalance(line, chain.balance))
      report(place, wrongAmount(line))
      // Held against what the line before says, so that one wrong line does not make all after it wrong.
      chain.balance = line.balanceAfter
      chain.sum += line.amount
      usage.addLine(line)
    }
    for (const line of await linesWithoutRequest(books, page)) {
      report(() => placeOf(books, line), { expected: "its request", found: "none" })
    }
    await reconcileWithJobs(books, page, report)
    lines += page.length
  }
  if (chain !== undefined) endChain(chain)
  return lines
}

function placeOf(books: Books, { accountId, id, reference }: FoundLine): string {
  return `${accountPlace(books, accountId)}, line ${id} (${JSON.stringify(reference)})`
}

function missingAccount({ accounts }: Books, { accountId }: FoundLine): Difference | null {
  return accounts.has(accountId) ? null : { expected: "an account that exists", found: "none of that id" }
}

const signs: Readonly<Record<LineKind, { readonly expected: string; fits(amount: bigint): boolean }>> = {
  topup: { expected: "a top-up above 0", fits: (amount) => amount > 0n },
  charge: { expected: "a charge below 0", fits: (amount) => amount < 0n },
  adjustment: { expected: "an adjustment other than 0", fits: (amount) => amount !== 0n },
}

function wrongSign({ kind, amount }: FoundLine): Difference | null {
  const { expected, fits } = signs[kind]
  return fits(amount) ? null : { expected, found: dollarsOf(amount) }
}

function missingReference({ reference }: FoundLine): Difference | null {
  return reference === "" ? { expected: "a reference", found: "none" } : null
}

function wrongBalance({ amount, balanceAfter }: FoundLine, before: bigint): Difference | null {
  const expected = before + amount
  if (balanceAfter === expected) return null
  return { expected: `a balance of ${dollarsOf(expected)} after it`, found: dollarsOf(balanceAfter) }
}

function wrongSum({ balance, sum }: Chain): Difference | null {
  if (sum === balance) return null
  return { expected: `a balance of ${dollarsOf(sum)}, the sum of its lines`, found: dollarsOf(balance) }
}

/** A charge carries the quantities and the prices that it was made by, as they were after tiers. */
function wrongAmount({ kind, amount, measured, price, unreadable }: FoundLine): Difference | null {
  if (kind !== "charge") return null
  const expected = "the quantities and prices that it was made by"
  if (unreadable !== undefined) return { expected, found: `some that cannot be read (${unreadable})` }
  if (measured === null || price === null) return { expected, found: "none" }
  try {
    const { version, multiplier, units } = price
    const charged = -chargeFor({ version, multiplier, price: units }, measured.measured).amount
    if (amount === charged) return null
    return { expected: `${dollarsOf(charged)} by its own quantities and prices`, found: dollarsOf(amount) }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { expected, found: `some that cannot be charged by (${why})` }
  }
}

/** Lines stay for ever, requests for a time. A video's charge belongs to its job. */
async function linesWithoutRequest(books: Books, page: readonly FoundLine[]): Promise<readonly FoundLine[]> {
  const ofRequests = page.filter(
    ({ kind, reference, createdAt, measured }) =>
      kind === "charge" &&
      isRequestReference(reference) &&
      createdAt >= books.requestsKeptSince &&
      measured?.endpoint !== "video",
  )
  if (ofRequests.length === 0) return []
  const kept = await books.requestsAmong(ofRequests.map(({ reference }) => reference))
  return ofRequests.filter(({ reference }) => !kept.has(reference))
}

/** Jobs stay as long as lines do. Whatever kind of line it is, nothing else may have the reference of a job's charge. */
async function reconcileWithJobs(books: Books, page: readonly FoundLine[], report: Report): Promise<void> {
  const ofJobs = page.flatMap((line) => {
    const jobId = jobIdIn(line.reference)
    return jobId === null ? [] : [{ line, jobId }]
  })
  if (ofJobs.length === 0) return
  const states = await books.jobsAmong(ofJobs.map(({ jobId }) => jobId))
  for (const { line, jobId } of ofJobs) {
    const state = states.get(jobId)
    if (state === "completed") continue
    const found = state === undefined ? "none" : `one that is ${state}`
    report(() => placeOf(books, line), { expected: "its completed video job", found })
  }
}
