import type { Migration } from "kysely/migration"
import type { Engine } from "../schema.ts"
import { first } from "./0001-first.ts"

/** Every migration there ever was, applied in the order of their names. Never change one that was released. */
export const migrations: Readonly<Record<string, (engine: Engine) => Migration>> = {
  "0001-first": first,
}
