import { nothingMeasured } from "../core/measured.ts"
import type { RequestRecord } from "../core/request-record.ts"
import type { Ending, Story } from "../core/story.ts"

/** A story that has ended, as the books keep it. */
export function recordOf(story: Story, ending: Ending, durationMs: number): RequestRecord {
  const last = story.attempts.at(-1)
  const endedAt = Date.now()
  return {
    id: story.requestId,
    accountId: story.accountId,
    keyId: story.keyId,
    keyName: story.key,
    endpoint: story.endpoint,
    model: story.model,
    upstream: last?.upstream ?? null,
    upstreamModel: last?.upstreamModel ?? null,
    stream: story.stream,
    attempts: story.attempts,
    status: story.status,
    error: story.error,
    ending,
    // Reckoned back from the end, so that a clock that was set meanwhile makes no request last negative time.
    startedAt: endedAt - Math.round(durationMs),
    endedAt,
    firstTokenMs: story.firstTokenAt === null ? null : Math.round(story.firstTokenAt),
    durationMs: Math.round(durationMs),
    measured: story.measured ?? nothingMeasured,
    estimated: story.estimated,
    usageInvalid: story.usageInvalid,
    price: story.price,
    charge: story.charge,
  }
}
