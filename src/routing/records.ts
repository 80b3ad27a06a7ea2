import type { AttemptRecord, Story } from "../core/story.ts"
import type { Step } from "./itinerary.ts"

/** Puts down that a route is being asked; `startedAt` is when the request began, by `performance.now()`. */
export function openRecord({ route, why }: Step, story: Story, startedAt: number): AttemptRecord {
  const record: AttemptRecord = {
    upstream: route.upstream.name,
    upstreamModel: route.upstreamModel,
    why,
    startedAt: performance.now() - startedAt,
    endedAt: null,
    outcome: "asking",
    status: null,
    detail: null,
  }
  story.attempts.push(record)
  return record
}
