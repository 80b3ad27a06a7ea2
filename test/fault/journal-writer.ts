/**
 * A process of its own that appends the records `r<first>`, `r<first + 1>`, … to the journal in the folder given, in
 * groups of one to five, and says after each group how many it has been promised.
 */
import { writeSync } from "node:fs"
import { openJournal } from "../../src/billing/journal.ts"
import { sampleRecords } from "../support/request-records.ts"

const [folder = "", first = "0"] = process.argv.slice(2)
const smallSegments = 20_000
const journal = await openJournal(folder, () => {}, smallSegments)
for (let at = Number(first); ; ) {
  const next = at + 1 + Math.floor(Math.random() * 5)
  await journal.append(sampleRecords(at, next))
  at = next
  writeSync(1, `${at}\n`)
}
