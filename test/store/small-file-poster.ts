/** Posts charges until the file cannot grow any more, and prints how many were posted and what the error was. */
import { openStore } from "../../src/store/db.ts"
import { isUnavailable } from "../../src/store/errors.ts"
import { postSettlements } from "../../src/store/settlements.ts"
import { giveAccount } from "./engines.ts"
import { idOf, requestRecord } from "./records.ts"

const store = await openStore({ kind: "sqlite", file: process.argv[2]! })
await giveAccount(store, "acme")
const accountId = await idOf(store, "acme")
const batch = 32
let posted = 0
try {
  for (;;) {
    const records = Array.from({ length: batch }, () => requestRecord(accountId))
    await postSettlements(store, records, { mayBeKnown: false })
    posted += batch
  }
} catch (error) {
  const code = error instanceof Error && "code" in error ? error.code : String(error)
  console.log(JSON.stringify({ posted, error: { code, unavailable: isUnavailable(error) } }))
}
process.exit(0)
