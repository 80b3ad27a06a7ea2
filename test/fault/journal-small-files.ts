/**
 * A process of its own whose files cannot grow beyond what the shell allowed it: appends some records that fit, many that
 * do not, and one more that fits; says for each whether it was promised.
 */
import { openJournal } from "../../src/billing/journal.ts"
import { sampleRecords } from "../support/request-records.ts"

const journal = await openJournal(process.argv[2] ?? "", () => {})
const outcomes: string[] = []
for (const [from, to] of [
  [0, 10],
  [10, 200],
  [200, 201],
] as const) {
  outcomes.push(
    await journal.append(sampleRecords(from, to)).then(
      () => "promised",
      (error: unknown) => String(error),
    ),
  )
}
console.log(JSON.stringify(outcomes))
await journal.close()
