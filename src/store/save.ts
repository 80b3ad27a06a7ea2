import { PostgresAdapter } from "kysely"
import { StoreConflict } from "./errors.ts"
import type { Engine, Reader, Writer } from "./schema.ts"

/** What a save did; "unchanged" wrote nothing. */
export type Saved = "created" | "updated" | "unchanged"

const namesInMessage = 5

/** True where the row already has all the wanted values, so that there is nothing to write. */
export function alreadyHas<T extends object>(row: T, wanted: Partial<T>): boolean {
  for (const name in wanted) if (row[name] !== wanted[name]) return false
  return true
}

/** The present moment as the tables keep it. */
export function now(): bigint {
  return BigInt(Date.now())
}

/** Unix milliseconds as the tables keep them. */
export function milliseconds(value: number): bigint {
  return BigInt(Math.round(value))
}

export function flag(value: boolean): bigint {
  return value ? 1n : 0n
}

/** Refuses to delete what others still use, naming the first of them. */
export function refuseIfUsed(what: string, by: string, users: readonly string[]): void {
  if (users.length === 0) return
  const named = users.slice(0, namesInMessage).map((name) => JSON.stringify(name))
  const rest = users.length > namesInMessage ? ` and ${users.length - namesInMessage} more` : ""
  throw new StoreConflict(`${what} is still used by ${by} ${named.join(", ")}${rest}`)
}

/** True where a row read for a change must be locked against others; SQLite's transactions keep others out as a whole. */
export function locksRows(trx: Writer): boolean {
  return engineOf(trx) === "postgres"
}

export function engineOf(db: Reader): Engine {
  return db.getExecutor().adapter instanceof PostgresAdapter ? "postgres" : "sqlite"
}
