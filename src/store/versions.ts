import { locksRows } from "./save.ts"
import type { Reader, Writer } from "./schema.ts"

/** Grows with every change of the catalog, so that instances notice the changes of others by one small query. */
export async function catalogVersion(db: Reader): Promise<number> {
  const row = await db.selectFrom("versions").select("value").where("name", "=", "catalog").executeTakeFirstOrThrow()
  return Number(row.value)
}

/**
 * The first step of every transaction that edits the catalog: it makes the editors wait for each other, so that each
 * sees and checks what the one before committed.
 */
export async function lockCatalog(trx: Writer): Promise<number> {
  const row = await trx
    .selectFrom("versions")
    .select("value")
    .where("name", "=", "catalog")
    .$if(locksRows(trx), (query) => query.forNoKeyUpdate())
    .executeTakeFirstOrThrow()
  return Number(row.value)
}

/** The last step of a transaction that changed something. */
export async function bumpCatalogVersion(trx: Writer): Promise<number> {
  const row = await trx
    .updateTable("versions")
    .set((column) => ({ value: column("value", "+", 1n) }))
    .where("name", "=", "catalog")
    .returning("value")
    .executeTakeFirstOrThrow()
  return Number(row.value)
}

/** Requests that ended before this time may have been deleted; Unix milliseconds. */
export async function requestsKeptSince(db: Reader): Promise<number> {
  const row = await db
    .selectFrom("versions")
    .select("value")
    .where("name", "=", "requests_kept_since")
    .executeTakeFirstOrThrow()
  return Number(row.value)
}

/** Belongs into every transaction that deletes requests; never goes back. */
export async function raiseRequestsKeptSince(trx: Writer, time: number): Promise<void> {
  await trx
    .updateTable("versions")
    .set({ value: BigInt(time) })
    .where("name", "=", "requests_kept_since")
    .where("value", "<", BigInt(time))
    .execute()
}
