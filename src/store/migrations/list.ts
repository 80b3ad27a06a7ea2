import type { Migration } from "kysely/migration"
import type { Engine } from "../schema.ts"
import { first } from "./0001-first.ts"
import { money } from "./0002-money.ts"
import { video } from "./0003-video.ts"

/** Every migration there ever was, applied in the order of their names. Never change one that was released. */
export const migrations: Readonly<Record<string, (engine: Engine) => Migration>> = {
  "0001-first": first,
  "0002-money": money,
  "0003-video": video,
}
