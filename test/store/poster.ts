/**
 * A process of its own that posts batches of requests: to the store and for the account ids given as JSON in its first two
 * arguments, as many batches as the third says. It prints what each record was charged, one line for each batch posted.
 */
import { type DatabaseTarget, openStore } from "../../src/store/db.ts"
import { postSettlements } from "../../src/store/settlements.ts"
import { requestRecord } from "./records.ts"

const target: DatabaseTarget = JSON.parse(process.argv[2] ?? "")
const accountIds: readonly string[] = JSON.parse(process.argv[3] ?? "")
const store = await openStore(target)
for (let batch = 0; batch < Number(process.argv[4]); batch++) {
  const records = accountIds
    .map((id, n) => requestRecord(id, { charge: BigInt(n + 1), model: `m-${batch % 3}` }))
    .toReversed()
  await postSettlements(store, records, { mayBeKnown: false })
  console.log(JSON.stringify(records.map(({ accountId, charge }) => ({ accountId, charge: String(charge) }))))
}
await store.close()
