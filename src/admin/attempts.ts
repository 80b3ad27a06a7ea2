import { z } from "@hono/zod-openapi"
import type { AttemptRecord } from "../core/story.ts"

/** One ask to an upstream, as requests and video jobs show it. */
export const attemptSchema = z
  .object({
    upstream: z.string(),
    upstream_model: z.string(),
    why: z.string().describe("Why this route was asked at this moment."),
    started_ms: z.number().describe("Since the start of the request."),
    ended_ms: z.number().nullable(),
    outcome: z.string().describe("`answered`, or what went wrong, such as `timeout`."),
    status: z.int().nullable().describe("The upstream's HTTP status; null where none came."),
    detail: z.string().nullable().describe("What the upstream or the connection said; credentials are blanked out."),
  })
  .openapi("Attempt")

export function attemptView(attempt: AttemptRecord): z.infer<typeof attemptSchema> {
  return {
    upstream: attempt.upstream,
    upstream_model: attempt.upstreamModel,
    why: attempt.why,
    started_ms: attempt.startedAt,
    ended_ms: attempt.endedAt,
    outcome: attempt.outcome,
    status: attempt.status,
    detail: attempt.detail,
  }
}
