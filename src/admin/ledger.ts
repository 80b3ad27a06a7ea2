import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi"
import { endpoints } from "../core/endpoints.ts"
import { dollarsOf } from "../lib/money.ts"
import { type LedgerLine, largestAmount, listLedgerBefore } from "../store/ledger.ts"
import type { LineKind } from "../store/schema.ts"
import { requireAccount } from "./accounts.ts"
import { type Listing, pageOf, pageParameters, pageSchema, readPageAsk } from "./pages.ts"
import { choiceParameter, queryOf, textParameter, timeOf, timeParameter } from "./parameters.ts"
import type { AdminParts } from "./parts.ts"
import {
  appliedPriceSchema,
  dollars,
  priceView,
  quantitiesView,
  quantityFields,
  secondsSourceSchema,
} from "./quantities.ts"
import { answer, notFound, refusals } from "./responses.ts"

const kinds = ["topup", "charge", "adjustment"] as const satisfies readonly LineKind[]

export const lineFields = {
  id: z.string().describe("Grows with every line."),
  account: z.string().describe("The account's name."),
  kind: z.enum(kinds),
  amount: dollars("What the line adds to the balance; below zero for charges."),
  balance_after: dollars("The account's balance after this line."),
  reference: z
    .string()
    .describe(
      "Of a charge the id of its request; of a video `video_` and the id of its job. No two lines have the same.",
    ),
  note: z.string().nullable(),
  measured: z
    .object({
      model: z.string(),
      upstream: z.string().nullable(),
      endpoint: z.enum(endpoints),
      ...quantityFields,
      seconds_source: secondsSourceSchema.optional(),
    })
    .nullable()
    .describe("Of a charge, what it was made by; what was not measured is absent."),
  price: appliedPriceSchema.nullable().describe("Of a charge, what it was made at."),
  estimated: z.boolean().describe("Something was counted here because the upstream did not say."),
  usage_invalid: z.boolean().describe("The upstream said something that cannot be charged by."),
  created_at: z.iso.datetime(),
}

const lineSchema = z.object(lineFields).openapi("LedgerLine")

const listRoute = createRoute({
  method: "get",
  path: "/api/ledger",
  operationId: "listLedger",
  summary: "Ledger lines, newest first",
  tags: ["ledger"],
  request: {
    query: queryOf({
      ...pageParameters,
      account: textParameter("Only lines of this account, by its id or name."),
      kind: choiceParameter("Only lines of this kind.", kinds),
      reference: textParameter("Only the line of this reference."),
      since: timeParameter("Only lines of this time or later."),
      until: timeParameter("Only lines before this time."),
    }),
  },
  responses: { 200: answer("A page of lines.", pageSchema(lineSchema, "LedgerPage")), ...refusals, ...notFound },
})

export type NamedLine = LedgerLine & { readonly account: string }

const listing: Listing<NamedLine, bigint> = {
  name: "ledger",
  write: ({ id }) => String(id),
  read(text) {
    const id = /^\d{1,19}$/.test(text) ? BigInt(text) : null
    return id !== null && id <= largestAmount ? id : null
  },
}

export function ledgerRoutes(app: OpenAPIHono, parts: AdminParts): void {
  app.openapi(listRoute, async (context) => {
    const { account, kind, reference, since, until, ...query } = context.req.valid("query")
    const ask = readPageAsk(listing, query)
    const found = await listLedgerBefore(parts.store.db, {
      before: ask.after,
      limit: ask.limit + 1,
      account: account === undefined ? undefined : (await requireAccount(parts, account)).id,
      kind,
      reference,
      since: timeOf(since),
      until: timeOf(until),
    })
    const { items, next } = pageOf(ask, found)
    return context.json({ data: items.map(lineView), next }, 200)
  })
}

export function lineView(line: NamedLine): z.infer<typeof lineSchema> {
  return {
    id: String(line.id),
    account: line.account,
    kind: line.kind,
    amount: dollarsOf(line.amount),
    balance_after: dollarsOf(line.balanceAfter),
    reference: line.reference,
    note: line.note,
    measured: line.measured === null ? null : measuredView(line.measured),
    price: line.price === null ? null : priceView(line.price),
    estimated: line.estimated,
    usage_invalid: line.usageInvalid,
    created_at: new Date(line.createdAt).toISOString(),
  }
}

function measuredView({ model, upstream, endpoint, measured, secondsSource }: NonNullable<LedgerLine["measured"]>) {
  const source = secondsSource === undefined ? {} : { seconds_source: secondsSource }
  return { model, upstream, endpoint, ...quantitiesView(measured), ...source }
}
