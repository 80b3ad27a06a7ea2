import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi"
import type { Snapshot } from "../core/catalog.ts"
import { dollarsOf } from "../lib/money.ts"
import { type AccountWithBalance, findAccount, listAccountsAfter } from "../store/accounts.ts"
import { missing } from "./errors.ts"
import { namedListing, pageOf, pageParameters, pageSchema, readPageAsk } from "./pages.ts"
import { flagParameter, nameInPath, queryOf, textParameter } from "./parameters.ts"
import type { AdminParts } from "./parts.ts"
import { answer, notFound, refusals } from "./responses.ts"

const accountSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    plan: z.string().describe("The name of its plan."),
    concurrency: z.int().nullable().describe("Its own limit of requests in flight; 0: unlimited, null: the plan's."),
    effective_concurrency: z.int().describe("The limit that applies, its own or the plan's; 0: unlimited."),
    suspended: z.boolean(),
    balance: z.string().describe("Dollars, as an exact decimal.").openapi({ example: "99.95" }),
    in_flight: z.int().describe("Requests being served now."),
    created_at: z.iso.datetime(),
  })
  .openapi("Account")

export const accountInPath = z.object({
  a: nameInPath("The account's id or name; where one account's name is another's id, the id."),
})

const listing = namedListing("accounts")

const listRoute = createRoute({
  method: "get",
  path: "/api/accounts",
  operationId: "listAccounts",
  summary: "Accounts in the order of their names",
  tags: ["accounts"],
  request: {
    query: queryOf({
      ...pageParameters,
      name: textParameter("Only the account of this name."),
      plan: textParameter("Only accounts on the plan of this name."),
      suspended: flagParameter("Only accounts that are suspended, or only those that are not."),
    }),
  },
  responses: { 200: answer("A page of accounts.", pageSchema(accountSchema, "AccountPage")), ...refusals },
})

const oneRoute = createRoute({
  method: "get",
  path: "/api/accounts/{a}",
  operationId: "getAccount",
  summary: "One account",
  tags: ["accounts"],
  request: {
    params: accountInPath,
    query: queryOf({}),
  },
  responses: { 200: answer("The account.", accountSchema), ...refusals, ...notFound },
})

export function accountRoutes(app: OpenAPIHono, parts: AdminParts): void {
  const { db } = parts.store
  app.openapi(listRoute, async (context) => {
    const { name, plan, suspended, ...query } = context.req.valid("query")
    const ask = readPageAsk(listing, query)
    const filter = { name, plan, suspended: suspended === undefined ? undefined : suspended === "true" }
    const { items, next } = pageOf(ask, await listAccountsAfter(db, ask.after, ask.limit + 1, filter))
    const snapshot = parts.snapshot()
    const data = await Promise.all(items.map((account) => accountView(account, snapshot, parts)))
    return context.json({ data, next }, 200)
  })
  app.openapi(oneRoute, async (context) => {
    const { a } = context.req.valid("param")
    const account = await requireAccount(parts, a)
    return context.json(await accountView(account, parts.snapshot(), parts), 200)
  })
}

/** The account of this id or name, which must exist. */
export async function requireAccount({ store }: AdminParts, idOrName: string): Promise<AccountWithBalance> {
  const account = await findAccount(store.db, idOrName)
  if (account === null) throw missing("account", idOrName)
  return account
}

async function accountView(
  account: AccountWithBalance,
  snapshot: Snapshot,
  { inFlight }: AdminParts,
): Promise<z.infer<typeof accountSchema>> {
  const { id, name, plan, concurrency, suspended } = account
  return {
    id,
    name,
    plan,
    concurrency,
    // The plan as requests are served by it, which may be a moment behind the database.
    effective_concurrency: concurrency ?? snapshot.plans.get(plan)?.concurrency ?? 0,
    suspended,
    balance: dollarsOf(account.balance),
    in_flight: await inFlight(id),
    created_at: new Date(account.createdAt).toISOString(),
  }
}
