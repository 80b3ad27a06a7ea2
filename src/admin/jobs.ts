import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi"
import { isOver, jobStates } from "../core/video-job.ts"
import { dollarsOf } from "../lib/money.ts"
import { findJobForAdmin, type JobPlace, type JobStory, listJobsBefore } from "../store/job-lists.ts"
import { requireAccount } from "./accounts.ts"
import { attemptSchema, attemptView } from "./attempts.ts"
import { missing } from "./errors.ts"
import { type Listing, pageOf, pageParameters, pageSchema, readPageAsk } from "./pages.ts"
import { choiceParameter, isPlain, nameInPath, queryOf, textParameter, timeOf, timeParameter } from "./parameters.ts"
import type { AdminParts } from "./parts.ts"
import { appliedPriceSchema, dollars, priceView, secondsOf, secondsSourceSchema } from "./quantities.ts"
import { answer, notFound, refusals } from "./responses.ts"

const moment = (meaning: string) => z.iso.datetime().nullable().describe(meaning)

const summaryFields = {
  id: z.string().describe("As the caller knows it."),
  account: z.string().describe("The account's name."),
  account_id: z.string(),
  key: z.string().describe("The name of the API key."),
  key_id: z.string(),
  request_id: z.string().describe("The request that submitted it."),
  model: z.string().describe("As the caller named it."),
  with_image: z.boolean().describe("It begins with a picture of the caller's."),
  upstream: z.string().describe("By its name when the job was sent there."),
  vendor: z.string(),
  upstream_model: z.string(),
  reference: z.string().nullable().describe("The vendor's own id of the job; null until the vendor has taken it."),
  state: z.enum(jobStates).describe("`submitting`: written down, and perhaps sent; callers see it as `queued`."),
  deleted: z.boolean().describe("The caller has deleted it: callers cannot see it any more."),
  created_at: z.iso.datetime(),
  submitted_at: moment("When the vendor was known to have taken it."),
  finished_at: moment("When it was completed or had failed."),
  last_look_at: moment("When the vendor was asked after it last without a verdict."),
  next_look_at: moment("When the vendor is asked after it next; null where it is over."),
  polls: z.int().describe("How often the vendor was asked after it without a verdict."),
  seconds: z.string().nullable().describe("Its length, as an exact decimal.").openapi({ example: "5.041667" }),
  seconds_source: secondsSourceSchema.nullable(),
  charge: dollars("What was charged, never below zero.").openapi({ example: "0.35" }),
  error: z.string().nullable().describe("What the caller is told of a failed job."),
  trouble: z.string().nullable().describe("What stood in the way of the last look, or was behind the failure."),
}

const summarySchema = z.object(summaryFields).openapi("JobSummary")

const resultSchema = z
  .object({
    url: z.string().nullable().describe("The vendor's address of it, as the vendor told it."),
    needs_credential: z
      .boolean()
      .describe("The address opens only with the upstream's credential, so callers get another."),
    kept: z.boolean().describe("A copy is kept, which callers are given."),
  })
  .openapi("JobResult")

const jobSchema = z
  .object({
    ...summaryFields,
    sent_seconds: z.int().nullable().describe("The length asked of the vendor; null where it takes none."),
    missing_since: moment("Since when the vendor says that it knows no such job; null while it does."),
    attempts: z.array(attemptSchema).describe("Each ask to an upstream to make it, in order."),
    result: resultSchema.nullable().describe("Null until it is completed."),
    price: appliedPriceSchema.nullable().describe("What it was charged at; null until it is completed."),
    balance_after: dollars("The account's balance after the charge; null where there was none.").nullable(),
  })
  .openapi("Job")

const listRoute = createRoute({
  method: "get",
  path: "/api/jobs",
  operationId: "listJobs",
  summary: "Video jobs, newest first",
  tags: ["jobs"],
  request: {
    query: queryOf({
      ...pageParameters,
      account: textParameter("Only jobs of this account, by its id or name."),
      model: textParameter("Only jobs for this model."),
      upstream: textParameter("Only jobs that were sent to this upstream, by its name at that time."),
      vendor: textParameter("Only jobs of this vendor."),
      state: choiceParameter("Only jobs in this state.", jobStates),
      since: timeParameter("Only jobs that were created at this time or later."),
      until: timeParameter("Only jobs that were created before this time."),
    }),
  },
  responses: { 200: answer("A page of jobs.", pageSchema(summarySchema, "JobPage")), ...refusals, ...notFound },
})

const oneRoute = createRoute({
  method: "get",
  path: "/api/jobs/{j}",
  operationId: "getJob",
  summary: "The whole story of one video job",
  tags: ["jobs"],
  request: { params: z.object({ j: nameInPath("The id of the job.") }), query: queryOf({}) },
  responses: { 200: answer("The job.", jobSchema), ...refusals, ...notFound },
})

const listing: Listing<JobPlace, JobPlace> = {
  name: "jobs",
  write: ({ createdAt, id }) => `${createdAt}:${id}`,
  read(text) {
    const [, createdAt, id] = /^(\d{1,15}):(.+)$/s.exec(text) ?? []
    return createdAt !== undefined && id !== undefined && isPlain(id) ? { createdAt: Number(createdAt), id } : null
  },
}

export function jobRoutes(app: OpenAPIHono, parts: AdminParts): void {
  const { db } = parts.store
  app.openapi(listRoute, async (context) => {
    const { limit, cursor, account, since, until, ...filter } = context.req.valid("query")
    const ask = readPageAsk(listing, { limit, cursor })
    const found = await listJobsBefore(db, {
      ...filter,
      before: ask.after,
      limit: ask.limit + 1,
      account: account === undefined ? undefined : (await requireAccount(parts, account)).id,
      since: timeOf(since),
      until: timeOf(until),
    })
    const { items, next } = pageOf(ask, found)
    return context.json({ data: items.map(summaryView), next }, 200)
  })
  app.openapi(oneRoute, async (context) => {
    const { j } = context.req.valid("param")
    const job = await findJobForAdmin(db, j)
    if (job === null) throw missing("job", j)
    return context.json(jobView(job), 200)
  })
}

function summaryView(job: JobStory): z.infer<typeof summarySchema> {
  const { upstream, vendor, upstreamModel } = job.route
  return {
    id: job.id,
    account: job.account,
    account_id: job.accountId,
    key: job.keyName,
    key_id: job.keyId,
    request_id: job.requestId,
    model: job.model,
    with_image: job.withImage,
    upstream,
    vendor,
    upstream_model: upstreamModel,
    reference: job.vendorId,
    state: job.state,
    deleted: job.hidden,
    created_at: new Date(job.createdAt).toISOString(),
    submitted_at: timeText(job.submittedAt),
    finished_at: timeText(job.finishedAt),
    last_look_at: timeText(job.lastLookAt),
    next_look_at: isOver(job.state) ? null : timeText(job.nextLookAt),
    polls: job.polls,
    seconds: job.microseconds === null ? null : secondsOf(BigInt(job.microseconds)),
    seconds_source: job.secondsSource,
    charge: dollarsOf(job.charge),
    error: job.error,
    trouble: job.trouble,
  }
}

/** Names each field: neither the adapter's reference nor what is kept of the credential is among them. */
function jobView(job: JobStory): z.infer<typeof jobSchema> {
  return {
    ...summaryView(job),
    sent_seconds: job.route.sentSeconds,
    missing_since: timeText(job.missingSince),
    attempts: job.attempts.map(attemptView),
    result: resultOf(job),
    price: job.price === null ? null : priceView(job.price),
    balance_after: job.line === null ? null : dollarsOf(job.line.balanceAfter),
  }
}

function resultOf(job: JobStory): z.infer<typeof resultSchema> | null {
  if (job.state !== "completed") return null
  return { url: job.resultUrl, needs_credential: job.resultNeedsCredential, kept: job.resultKept }
}

function timeText(milliseconds: number | null): string | null {
  return milliseconds === null ? null : new Date(milliseconds).toISOString()
}
