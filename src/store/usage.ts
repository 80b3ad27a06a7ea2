import { type RawBuilder, sql } from "kysely"
import { engineOf } from "./save.ts"
import { type Engine, type Reader, type UsageCounter, usageCounters } from "./schema.ts"

/** How long each row of a list is; all in UTC. */
export type UsageStep = "hour" | "day" | "month" | "total"

export type UsageGroup = "account" | "model" | "upstream"

/** Where a row stands: the first hour of its step, then the names it is grouped by; null where it is not. */
export interface UsageKey {
  /** Hours since 1970. */
  readonly hour: number
  /** The account's name, or its id where it was deleted since. */
  readonly account: string | null
  readonly model: string | null
  /** "" where no upstream was asked. */
  readonly upstream: string | null
}

export interface UsageRow extends UsageKey {
  readonly accountId: string | null
  readonly sums: Readonly<Record<UsageCounter, bigint>>
}

/** Which usage is summed up; a field not given takes all. */
export interface UsageFilter {
  /** The account's id. */
  readonly account?: string | undefined
  readonly model?: string | undefined
  readonly upstream?: string | undefined
}

export interface UsageAsk extends UsageFilter {
  /** Hours since 1970: from this one on, and before that one. */
  readonly from: number
  readonly to: number
  readonly by: UsageStep
  readonly group: readonly UsageGroup[]
  /** The last row that was seen; null: from the beginning. */
  readonly after: UsageKey | null
  readonly limit: number
}

type SqlRow = Record<UsageCounter, bigint> & {
  readonly hour: bigint
  readonly account_id?: string
  readonly account?: string
  readonly model?: string
  readonly upstream?: string
}

const hoursPerDay = 24
const firstHoursRead = 48

/** Sums by time and then by the names of the groups, both ascending. Steps and groups without requests have no row. */
export async function listUsage(db: Reader, ask: UsageAsk): Promise<readonly UsageRow[]> {
  if (ask.by !== "hour") return readUsage(db, ask)
  // A page of hours needs few of the hours there are, so a longer and longer stretch is read until it is full.
  const rows: UsageRow[] = []
  let from = startOf(ask)
  for (let hours = firstHoursRead; from < ask.to && rows.length < ask.limit; hours *= 2) {
    const to = Math.min(ask.to, from + hours)
    rows.push(...(await readUsage(db, { ...ask, from, to, limit: ask.limit - rows.length })))
    from = to
  }
  return rows
}

/** Nothing before the last row that was seen needs to be read again. */
function startOf({ from, after }: UsageAsk): number {
  return after === null ? from : Math.max(from, after.hour)
}

async function readUsage(db: Reader, ask: UsageAsk): Promise<readonly UsageRow[]> {
  const named = ask.group.includes("account")
  const step = stepOf(ask, engineOf(db))
  const keys = [step, ...groupsOf(ask).map((group) => labels[group])]
  const names = groupsOf(ask).map((group) => sql`${labels[group]} as ${sql.id(group)}`)
  const columns = [sql`${step} as hour`, ...names, ...(named ? [sql`used.account_id`] : []), ...sums]
  const { rows } = await sql<SqlRow>`
    select ${sql.join(columns)} from (${sourceOf(ask)}) as used
    ${named ? sql`left join accounts on accounts.id = used.account_id` : sql``}
    ${ask.after === null ? sql`` : sql`where (${sql.join(keys)}) > (${sql.join(placeIn(ask, ask.after))})`}
    group by ${sql.join(named ? [...keys, sql`used.account_id`] : keys)}
    order by ${sql.join(keys)} limit ${sql.lit(ask.limit)}`.execute(db)
  return rows.map(rowOf)
}

const labels: Readonly<Record<UsageGroup, RawBuilder<unknown>>> = {
  account: sql`coalesce(accounts.name, used.account_id)`,
  model: sql`used.model`,
  upstream: sql`used.upstream`,
}

const sums = usageCounters.map((counter) => sql`cast(sum(used.${sql.id(counter)}) as bigint) as ${sql.id(counter)}`)

/** The groups asked for, in the one order that rows are sorted and gone on by. */
function groupsOf({ group }: UsageAsk): readonly UsageGroup[] {
  return (["account", "model", "upstream"] as const).filter((each) => group.includes(each))
}

function placeIn(ask: UsageAsk, after: UsageKey): readonly unknown[] {
  return [BigInt(after.hour), ...groupsOf(ask).map((group) => after[group] ?? "")]
}

function stepOf({ by, from }: UsageAsk, engine: Engine): RawBuilder<unknown> {
  if (by === "hour") return sql`used.hour`
  if (by === "day") return sql`(used.hour - used.hour % ${sql.lit(hoursPerDay)})`
  // Made of the column, because a constant cannot be grouped by.
  if (by === "total") return sql`(used.hour * 0 + ${sql.lit(from)})`
  if (engine === "sqlite") return sql`(unixepoch(used.hour * 3600, 'unixepoch', 'start of month') / 3600)`
  const month = sql`date_trunc('month', to_timestamp(used.hour * 3600) at time zone 'UTC')`
  return sql`(cast(extract(epoch from ${month}) as bigint) / 3600)`
}

/** Whole days come from the roll-up by days, which is a small part of the other; what is left at the edges from that. */
function sourceOf(ask: UsageAsk): RawBuilder<unknown> {
  const { by, to } = ask
  const from = startOf(ask)
  const firstDay = Math.ceil(from / hoursPerDay)
  const endDay = Math.floor(to / hoursPerDay)
  if (by === "hour" || firstDay >= endDay) return hoursBetween(ask, from, to)
  const parts = [daysBetween(ask, firstDay, endDay)]
  if (from < firstDay * hoursPerDay) parts.push(hoursBetween(ask, from, firstDay * hoursPerDay))
  if (endDay * hoursPerDay < to) parts.push(hoursBetween(ask, endDay * hoursPerDay, to))
  return sql.join(parts, sql` union all `)
}

const read = sql.join(["account_id", "model", "upstream", ...usageCounters].map((column) => sql.id(column)))

function hoursBetween(filter: UsageFilter, from: number, to: number): RawBuilder<unknown> {
  return sql`select hour, ${read} from usage_hours
    where hour >= ${BigInt(from)} and hour < ${BigInt(to)}${filtered(filter)}`
}

function daysBetween(filter: UsageFilter, from: number, to: number): RawBuilder<unknown> {
  return sql`select day * ${sql.lit(hoursPerDay)} as hour, ${read} from usage_days
    where day >= ${BigInt(from)} and day < ${BigInt(to)}${filtered(filter)}`
}

function filtered({ account, model, upstream }: UsageFilter): RawBuilder<unknown> {
  const conditions: RawBuilder<unknown>[] = []
  if (account !== undefined) conditions.push(sql` and account_id = ${account}`)
  if (model !== undefined) conditions.push(sql` and model = ${model}`)
  if (upstream !== undefined) conditions.push(sql` and upstream = ${upstream}`)
  return conditions.length === 0 ? sql`` : sql.join(conditions, sql``)
}

function rowOf({ hour, account_id, account, model, upstream, ...counted }: SqlRow): UsageRow {
  return {
    hour: Number(hour),
    accountId: account_id ?? null,
    account: account ?? null,
    model: model ?? null,
    upstream: upstream ?? null,
    sums: counted,
  }
}
