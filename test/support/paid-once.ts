import { join } from "node:path"
import { type DatabaseTarget, openStoreForReading } from "../../src/store/db.ts"
import type { LedgerLine } from "../../src/store/ledger.ts"
import { allLines, allRequests } from "../../src/store/reconcile-reads.ts"
import { openingDollars, type PayingCrowd, type Sent } from "./paying-crowd.ts"
import { until } from "./workbench.ts"

const nanosPerDollar = 1_000_000_000n

/** What is in the books: everything that a crowd can check. */
export interface Books {
  readonly lines: readonly LedgerLine[]
  /** The ids of requests on record that were charged. */
  readonly charged: readonly string[]
  /** The names of accounts by their ids. */
  readonly accounts: ReadonlyMap<string, string>
}

export async function readBooks(target: DatabaseTarget): Promise<Books> {
  const store = await openStoreForReading(target)
  try {
    return await store.snapshot(async (db) => {
      const accounts = await db.selectFrom("accounts").select(["id", "name"]).execute()
      return {
        lines: await Array.fromAsync(allLines(db)),
        charged: (await Array.fromAsync(allRequests(db))).filter(({ charge }) => charge > 0n).map(({ id }) => id),
        accounts: new Map(accounts.map(({ id, name }) => [id, name])),
      }
    })
  } finally {
    await store.close()
  }
}

/** How many records wait in the journal of a data folder, whoever wrote them. */
export async function journalled(dataDir: string): Promise<number> {
  let records = 0
  for (const name of new Bun.Glob("journal/*/charges-*.log").scanSync(dataDir)) {
    const file = Bun.file(join(dataDir, name))
    // Gone by now, where it is being emptied.
    const text = await file.text().catch(() => "")
    records += text.split("\n").length - 1
  }
  return records
}

/** Waits until the gateway of a data folder has posted all that waited. */
export async function emptyJournal(dataDir: string): Promise<void> {
  await until(async () => (await journalled(dataDir)) === 0, 30_000)
}

/**
 * What is wrong with the books, in words; nothing where all is well. Every whole response is charged once. What did not
 * arrive whole may be charged too, because the vendor did answer, but no more than once, and the right amount.
 */
export function faultsIn(books: Books, crowd: PayingCrowd): readonly string[] {
  const charges = books.lines.filter(({ kind }) => kind === "charge")
  return [
    ...unpaid(charges, crowd.sent),
    ...doubled(charges),
    ...charges.flatMap((line) => wrongIn(line, books, crowd)),
    ...wrongBalances(books, crowd),
    ...outOfOrder(charges),
    ...withoutCounterpart(charges, books.charged),
  ]
}

function unpaid(charges: readonly LedgerLine[], sent: readonly Sent[]): readonly string[] {
  const paid = new Set(charges.map(({ reference }) => reference))
  return sent
    .filter(({ outcome, id }) => outcome === "whole" && (id === null || !paid.has(id)))
    .map((request) => `${told(request)} came whole and is not charged`)
}

/** By reference, and by what was asked, should one request have been given two references. */
function doubled(charges: readonly LedgerLine[]): readonly string[] {
  const seen = new Set<string>()
  return charges.flatMap((line) => {
    const names = [line.reference, nameOf(line)]
    const faults = names.filter((name) => seen.has(name)).map((name) => `${name} is charged twice`)
    for (const name of names) seen.add(name)
    return faults
  })
}

function wrongIn(line: LedgerLine, books: Books, crowd: PayingCrowd): readonly string[] {
  const request = sentByName(crowd).get(nameOf(line))
  if (request === undefined) return [`${line.reference} charges ${nameOf(line)}, which nobody asked for`]
  const faults: string[] = []
  if (request.id !== null && request.id !== line.reference) faults.push(`is charged as ${line.reference}`)
  if (line.amount !== -request.cost) faults.push(`is charged ${-line.amount} instead of ${request.cost}`)
  if (books.accounts.get(line.accountId) !== request.account) faults.push("is charged to another account")
  if (line.estimated || line.usageInvalid) faults.push("is charged by an estimate")
  return faults.map((fault) => `${told(request)} ${fault}`)
}

const namedOnce = new WeakMap<PayingCrowd, { readonly count: number; readonly names: ReadonlyMap<string, Sent> }>()

function sentByName(crowd: PayingCrowd): ReadonlyMap<string, Sent> {
  const known = namedOnce.get(crowd)
  if (known?.count === crowd.sent.length) return known.names
  const names = new Map(crowd.sent.map((request) => [`${request.model} ${request.size}`, request]))
  namedOnce.set(crowd, { count: crowd.sent.length, names })
  return names
}

/** The request as only it can be named by what was measured. */
function nameOf({ measured }: LedgerLine): string {
  const { tokens, characters } = measured?.measured ?? { tokens: null, characters: null }
  return `${measured?.model} ${tokens?.input ?? characters}`
}

function wrongBalances({ lines, accounts }: Books, crowd: PayingCrowd): readonly string[] {
  const balances = new Map<string, bigint>()
  const faults: string[] = []
  for (const { accountId, amount, balanceAfter, reference } of lines) {
    const balance = (balances.get(accountId) ?? 0n) + amount
    if (balance !== balanceAfter) faults.push(`${reference} leaves ${balanceAfter} instead of ${balance}`)
    balances.set(accountId, balance)
  }
  const charged = lines.reduce((sum, { kind, amount }) => (kind === "charge" ? sum - amount : sum), 0n)
  const opening = BigInt(openingDollars) * nanosPerDollar * BigInt(crowd.accounts.length)
  const left = [...balances.values()].reduce((sum, balance) => sum + balance, 0n)
  if (left !== opening - charged) faults.push(`${accounts.size} accounts have ${left} instead of ${opening - charged}`)
  return faults
}

/** An account's charges are posted in the order in which its requests ended, however long some of them had to wait. */
function outOfOrder(charges: readonly LedgerLine[]): readonly string[] {
  return charges.flatMap((line, index) => {
    const before = charges[index - 1]
    if (before?.accountId !== line.accountId || before.createdAt <= line.createdAt) return []
    return [`${line.reference} ended before ${before.reference} and is posted after it`]
  })
}

function withoutCounterpart(charges: readonly LedgerLine[], charged: readonly string[]): readonly string[] {
  const onRecord = new Set(charged)
  const paid = new Set(charges.map(({ reference }) => reference))
  return [
    ...charges
      .filter(({ reference }) => !onRecord.has(reference))
      .map(({ reference }) => `${reference} has no request`),
    ...charged.filter((id) => !paid.has(id)).map((id) => `${id} has no charge`),
  ]
}

function told({ id, model, size, outcome }: Sent): string {
  return `${id} (${model}, size ${size}, ${outcome})`
}
