import type { Books } from "../store/reconcile-reads.ts"

/** What the books should say, and what they do say. */
export interface Difference {
  readonly expected: string
  readonly found: string
}

/** Takes what is wrong at a place; nothing where that is null. */
export type Report = (place: () => string, difference: Difference | null) => void

/** How many rows are looked at together. */
export const rowsAtOnce = 500

/** The account by the name that people know; quoted, so that whatever is in it stays on the line. */
export function accountPlace({ accounts }: Books, accountId: string): string {
  const name = accounts.get(accountId)
  return name === undefined ? `account id ${JSON.stringify(accountId)}` : `account ${JSON.stringify(name)}`
}

/** A request's charge has its id as reference; those of video jobs have others. */
export function isRequestReference(reference: string): boolean {
  return reference.startsWith("req_")
}

/** The same things in the same order, several at a time. */
export async function* inPages<T>(all: AsyncIterable<T>, size: number): AsyncGenerator<readonly T[]> {
  let page: T[] = []
  for await (const each of all) {
    page.push(each)
    if (page.length < size) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}
