import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi"
import { GatewayError } from "../core/errors.ts"
import { dollarsOf } from "../lib/money.ts"
import { listUsage, type UsageGroup, type UsageKey, type UsageRow, type UsageStep } from "../store/usage.ts"
import { requireAccount } from "./accounts.ts"
import { foreignCursor, type Listing, pageOf, pageParameters, pageSchema, readPageAsk } from "./pages.ts"
import { choiceParameter, listParameter, queryOf, textParameter, timeOf, timeParameter } from "./parameters.ts"
import type { AdminParts } from "./parts.ts"
import { dollars, secondsOf } from "./quantities.ts"
import { answer, notFound, refusals } from "./responses.ts"

const steps = ["hour", "day", "month", "total"] as const satisfies readonly UsageStep[]
const groups = ["account", "model", "upstream"] as const satisfies readonly UsageGroup[]
const hourMs = 3_600_000
const usualHours = 24

const sum = (meaning: string) => z.int().describe(meaning)

const rowSchema = z
  .object({
    time: z.iso.datetime().nullable().describe("When the hour, day or month begins, in UTC; null for a total."),
    account: z.string().optional().describe("Where grouped by it: the account's name, or its id if it was deleted."),
    model: z.string().optional().describe("Where grouped by it."),
    upstream: z.string().nullable().optional().describe("Where grouped by it; null where none was asked."),
    requests: sum("Requests that ended."),
    failures: sum("Of those, the ones whose callers did not get what they asked for."),
    estimated: sum("Of those, the ones charged by a count made here."),
    input_tokens: sum("Cached, written and audio ones included."),
    cached_input_tokens: sum("Input tokens read from a vendor's cache."),
    cache_write_tokens: sum("Input tokens written to a vendor's cache."),
    audio_input_tokens: sum("Input tokens of audio."),
    output_tokens: sum("Reasoning and audio ones included."),
    reasoning_tokens: sum("Output tokens of reasoning."),
    audio_output_tokens: sum("Output tokens of audio."),
    images: sum("Pictures made."),
    seconds: z.string().describe("Length of audio and video, as an exact decimal.").openapi({ example: "12.5" }),
    characters: sum("Unicode code points of texts to speak."),
    charge: dollars("What was charged.").openapi({ example: "12.5" }),
    duration_ms: sum("The sum over all requests; by `requests` it is their average."),
    first_token_ms: sum("The sum over requests that had a first token; by `first_tokens` it is their average."),
    first_tokens: sum("Requests that had a first token."),
  })
  .openapi("Usage")

const listRoute = createRoute({
  method: "get",
  path: "/api/usage",
  operationId: "listUsage",
  summary: "What was used, summed up by time and by account, model and upstream; oldest first",
  tags: ["usage"],
  request: {
    query: queryOf({
      ...pageParameters,
      from: timeParameter(
        `The first hour: the one with this time in it. ${usualHours} hours before \`to\` unless given.`,
      ),
      to: timeParameter("The last hour is the one that this time ends or is in. Now unless given."),
      by: choiceParameter("How long each row is; an hour unless given.", steps),
      group: listParameter("What rows are told apart by besides their time.", groups),
      account: textParameter("Only usage of this account, by its id or name."),
      model: textParameter("Only usage of this model."),
      upstream: textParameter("Only usage of this upstream; empty: only where none was asked."),
    }),
  },
  responses: { 200: answer("A page of sums.", pageSchema(rowSchema, "UsagePage")), ...refusals, ...notFound },
})

/** Hours since 1970: from this one on, and before that one. */
interface Span {
  readonly from: number
  readonly to: number
}

type Place = UsageKey & Span

const nameInCursor = z
  .string()
  .refine((name) => !name.includes("\0"))
  .nullable()
const placeSchema = z.tuple([z.int(), z.int(), z.int(), nameInCursor, nameInCursor, nameInCursor])

/** Rows of other steps or groups stand in other lists, whose cursors do not fit. */
function listingOf(by: UsageStep, group: readonly UsageGroup[]): Listing<Place, Place> {
  return {
    name: `usage:${by}:${group.join(",")}`,
    write: ({ from, to, hour, account, model, upstream }) => JSON.stringify([from, to, hour, account, model, upstream]),
    read(text) {
      const { data } = placeSchema.safeParse(parsed(text))
      if (data === undefined) return null
      const [from, to, hour, account, model, upstream] = data
      return { from, to, hour, account, model, upstream }
    },
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

export function usageRoutes(app: OpenAPIHono, parts: AdminParts): void {
  app.openapi(listRoute, async (context) => {
    const { from, to, by = "hour", group, account, model, upstream, ...query } = context.req.valid("query")
    const grouped = groups.filter((each) => group?.split(",").includes(each))
    const ask = readPageAsk(listingOf(by, grouped), query)
    const span = spanOf(timeOf(from), timeOf(to), ask.after)
    const found = await listUsage(parts.store.db, {
      ...span,
      by,
      group: grouped,
      after: ask.after,
      limit: ask.limit + 1,
      account: account === undefined ? undefined : (await requireAccount(parts, account)).id,
      model,
      upstream,
    })
    const { items, next } = pageOf(
      ask,
      found.map((row) => ({ ...row, ...span })),
    )
    return context.json({ data: items.map((row) => rowView(row, by)), next }, 200)
  })
}

/** What is not given is reckoned from now on the first page and stays the same on those after it, however late they are asked for. */
function spanOf(fromMs: number | undefined, toMs: number | undefined, after: Place | null): Span {
  const from = fromMs === undefined ? undefined : Math.floor(fromMs / hourMs)
  const to = toMs === undefined ? undefined : Math.ceil(toMs / hourMs)
  if (after !== null) {
    if ((from ?? after.from) !== after.from || (to ?? after.to) !== after.to) throw foreignCursor()
    return { from: after.from, to: after.to }
  }
  const end = to ?? Math.floor(Date.now() / hourMs) + 1
  const begin = from ?? end - usualHours
  if (begin >= end) throw new GatewayError("invalid_parameter", "from must be before to")
  return { from: begin, to: end }
}

function rowView({ hour, account, model, upstream, sums }: UsageRow, by: UsageStep): z.infer<typeof rowSchema> {
  const { charge, microseconds, ...counts } = sums
  return {
    time: by === "total" ? null : new Date(hour * hourMs).toISOString(),
    ...(account !== null && { account }),
    ...(model !== null && { model }),
    ...(upstream !== null && { upstream: upstream === "" ? null : upstream }),
    ...numbers(counts),
    seconds: secondsOf(microseconds),
    charge: dollarsOf(charge),
  }
}

function numbers<Name extends string>(counts: Readonly<Record<Name, bigint>>): Record<Name, number> {
  const entries = Object.entries<bigint>(counts).map(([name, count]) => [name, Number(count)])
  return Object.fromEntries(entries)
}
