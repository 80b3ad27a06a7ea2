import { join } from "node:path"
import { chargesOutside } from "../billing/journal-waiting.ts"
import { reconcile } from "../billing/reconcile.ts"
import type { Settings } from "../settings.ts"
import { openStoreForReading } from "../store/db.ts"
import { type Books, booksIn } from "../store/reconcile-reads.ts"

/** Beyond these a person learns nothing more from the next one. */
const mostTold = 1000

/** `tollgate reconcile`: adds the books up again, beside a running gateway or without; exit code 1 where they differ. */
export async function reconcileDatabase(settings: Settings): Promise<void> {
  const store = await openStoreForReading(settings.database)
  try {
    await store.snapshot(async (db) => printDifferences(await booksIn(db), join(settings.dataDir, "journal")))
  } finally {
    await store.close()
  }
}

async function printDifferences(books: Books, journal: string): Promise<void> {
  let told = 0
  const { accounts, lines, requests, jobs, hours, differences } = await reconcile(books, (difference) => {
    if (told++ < mostTold) console.log(difference)
  })
  if (differences > mostTold) console.log(`and ${differences - mostTold} more`)
  const { waiting, setAside } = await chargesOutside(journal, books)
  if (waiting > 0) console.log(`${waiting} charges wait in the journal`)
  if (setAside > 0) console.log(`${setAside} charges were set aside and need a person`)
  const looked = `reconciled ${accounts} accounts, ${lines} lines, ${requests} requests, ${jobs} jobs, ${hours} hours`
  console.log(`${looked}: ${differences === 0 ? "no" : differences} differences`)
  if (differences > 0) process.exitCode = 1
}
