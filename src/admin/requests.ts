import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi"
import { endpoints } from "../core/endpoints.ts"
import type { Ending } from "../core/story.ts"
import { dollarsOf } from "../lib/money.ts"
import {
  findRequest,
  listRequestsBefore,
  type RequestPlace,
  type RequestStory,
  type StoredRequest,
} from "../store/requests.ts"
import { requireAccount } from "./accounts.ts"
import { attemptSchema, attemptView } from "./attempts.ts"
import { missing } from "./errors.ts"
import { type Listing, pageOf, pageParameters, pageSchema, readPageAsk } from "./pages.ts"
import {
  choiceParameter,
  isPlain,
  nameInPath,
  queryOf,
  textParameter,
  timeOf,
  timeParameter,
  wholeParameter,
} from "./parameters.ts"
import type { AdminParts } from "./parts.ts"
import { appliedPriceSchema, dollars, priceView, quantitiesView, quantityFields } from "./quantities.ts"
import { answer, notFound, refusals } from "./responses.ts"

const endings = ["completed", "refused", "failed", "client_gone"] as const satisfies readonly Ending[]

const summaryFields = {
  id: z.string().describe("As in the header `x-request-id` of its answer."),
  account: z.string().nullable().describe("The account's name; null where it was deleted since."),
  account_id: z.string(),
  key: z.string().describe("The name of the API key."),
  key_id: z.string(),
  endpoint: z.enum(endpoints),
  model: z.string().describe("As the caller named it."),
  upstream: z.string().nullable().describe("The one that answered, or was asked last; null where none was asked."),
  upstream_model: z.string().nullable(),
  stream: z.boolean(),
  attempt_count: z.int().describe("How often upstreams were asked."),
  status: z.int().describe("The HTTP status that the caller was given; 499: the caller had left."),
  error: z.string().nullable().describe("The error code that the caller was given, in a body or in the stream."),
  ending: z.enum(endings),
  started_at: z.iso.datetime(),
  ended_at: z.iso.datetime(),
  first_token_ms: z.int().nullable().describe("From the start of the request to its first token or byte."),
  duration_ms: z.int(),
  estimated: z.boolean().describe("Something was counted here because the upstream did not say."),
  usage_invalid: z.boolean().describe("The upstream said something that cannot be charged by."),
  charge: dollars("What was charged, never below zero.").openapi({ example: "0.00011125" }),
}

const summarySchema = z.object(summaryFields).openapi("RequestSummary")

const requestSchema = z
  .object({
    ...summaryFields,
    attempts: z.array(attemptSchema).describe("Each ask to an upstream, in order."),
    usage: z.object(quantityFields).describe("What was measured; what was not is absent."),
    price: appliedPriceSchema.nullable().describe("What it was charged at; null where nothing was."),
    balance_after: dollars("The account's balance after the charge; null where there was none.").nullable(),
  })
  .openapi("Request")

const listRoute = createRoute({
  method: "get",
  path: "/api/requests",
  operationId: "listRequests",
  summary: "Requests by the time they ended, newest first",
  tags: ["requests"],
  request: {
    query: queryOf({
      ...pageParameters,
      account: textParameter("Only requests of this account, by its id or name."),
      key: textParameter("Only requests with this API key, by its id or name."),
      model: textParameter("Only requests for this model."),
      upstream: textParameter("Only requests that this upstream answered, or failed last."),
      endpoint: choiceParameter("Only requests to this endpoint.", endpoints),
      status: wholeParameter("Only requests that were given this HTTP status.", 100, 599),
      error: textParameter("Only requests that were given this error code."),
      ending: choiceParameter("Only requests that ended so.", endings),
      since: timeParameter("Only requests that ended at this time or later."),
      until: timeParameter("Only requests that ended before this time."),
    }),
  },
  responses: { 200: answer("A page of requests.", pageSchema(summarySchema, "RequestPage")), ...refusals, ...notFound },
})

const oneRoute = createRoute({
  method: "get",
  path: "/api/requests/{r}",
  operationId: "getRequest",
  summary: "The whole story of one request",
  tags: ["requests"],
  request: { params: z.object({ r: nameInPath("The id of the request.") }), query: queryOf({}) },
  responses: { 200: answer("The request.", requestSchema), ...refusals, ...notFound },
})

const listing: Listing<RequestPlace, RequestPlace> = {
  name: "requests",
  write: ({ endedAt, id }) => `${endedAt}:${id}`,
  read(text) {
    const [, endedAt, id] = /^(\d{1,15}):(.+)$/s.exec(text) ?? []
    return endedAt !== undefined && id !== undefined && isPlain(id) ? { endedAt: Number(endedAt), id } : null
  },
}

export function requestRoutes(app: OpenAPIHono, parts: AdminParts): void {
  const { db } = parts.store
  app.openapi(listRoute, async (context) => {
    const { limit, cursor, account, status, since, until, ...filter } = context.req.valid("query")
    const ask = readPageAsk(listing, { limit, cursor })
    const found = await listRequestsBefore(db, {
      ...filter,
      before: ask.after,
      limit: ask.limit + 1,
      account: account === undefined ? undefined : (await requireAccount(parts, account)).id,
      status: status === undefined ? undefined : Number(status),
      since: timeOf(since),
      until: timeOf(until),
    })
    const { items, next } = pageOf(ask, found)
    return context.json({ data: items.map(summaryView), next }, 200)
  })
  app.openapi(oneRoute, async (context) => {
    const { r } = context.req.valid("param")
    const request = await findRequest(db, r)
    if (request === null) throw missing("request", r)
    return context.json(requestView(request), 200)
  })
}

function summaryView(request: StoredRequest): z.infer<typeof summarySchema> {
  return {
    id: request.id,
    account: request.account,
    account_id: request.accountId,
    key: request.keyName,
    key_id: request.keyId,
    endpoint: request.endpoint,
    model: request.model,
    upstream: request.upstream,
    upstream_model: request.upstreamModel,
    stream: request.stream,
    attempt_count: request.attempts.length,
    status: request.status,
    error: request.error,
    ending: request.ending,
    started_at: new Date(request.startedAt).toISOString(),
    ended_at: new Date(request.endedAt).toISOString(),
    first_token_ms: request.firstTokenMs,
    duration_ms: request.durationMs,
    estimated: request.estimated,
    usage_invalid: request.usageInvalid,
    charge: dollarsOf(request.charge),
  }
}

function requestView(request: RequestStory): z.infer<typeof requestSchema> {
  return {
    ...summaryView(request),
    attempts: request.attempts.map(attemptView),
    usage: quantitiesView(request.measured),
    price: request.price === null ? null : priceView(request.price),
    balance_after: request.line === null ? null : dollarsOf(request.line.balanceAfter),
  }
}
