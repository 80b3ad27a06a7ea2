import type { JsonValue } from "../core/json.ts"
import { now, type Saved } from "./save.ts"
import type { Reader, Writer } from "./schema.ts"

export type StoredSettings = Readonly<Record<string, JsonValue>>

export async function listSettings(db: Reader): Promise<StoredSettings> {
  const rows = await db.selectFrom("settings").select(["key", "value"]).orderBy("key").execute()
  return Object.fromEntries(rows.map((row) => [row.key, JSON.parse(row.value)]))
}

export async function saveSetting(trx: Writer, key: string, value: JsonValue): Promise<Saved> {
  const text = JSON.stringify(value)
  const row = await trx.selectFrom("settings").select("value").where("key", "=", key).executeTakeFirst()
  const time = now()
  if (row === undefined) {
    await trx.insertInto("settings").values({ key, value: text, created_at: time, updated_at: time }).execute()
    return "created"
  }
  if (row.value === text) return "unchanged"
  await trx.updateTable("settings").set({ value: text, updated_at: time }).where("key", "=", key).execute()
  return "updated"
}

/** False where there was no such setting. */
export async function deleteSetting(trx: Writer, key: string): Promise<boolean> {
  const { numDeletedRows } = await trx.deleteFrom("settings").where("key", "=", key).executeTakeFirst()
  return numDeletedRows > 0n
}
