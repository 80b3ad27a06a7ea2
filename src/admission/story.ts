import type { Ledger } from "../billing/ledger.ts"
import type { Endpoint } from "../core/endpoints.ts"
import { type ErrorCode, GatewayError } from "../core/errors.ts"
import type { Events } from "../core/events.ts"
import { chargeFor, type Tariff } from "../core/price.ts"
import type { Ending, Story } from "../core/story.ts"
import type { Limiter } from "../limits/limiter.ts"
import type { Call } from "./call.ts"
import { recordOf } from "./record.ts"

/** What the end of a request touches of the house. */
export interface StoryParts {
  readonly limiter: Limiter
  readonly ledger: Ledger
  readonly events: Events
}

export function beginStory(
  { requestId, principal }: Call,
  endpoint: Endpoint,
  { model, stream }: { readonly model: string; readonly stream: boolean },
  tariff: Tariff,
): Story {
  return {
    requestId,
    endpoint,
    accountId: principal.accountId,
    account: principal.accountName,
    keyId: principal.keyId,
    key: principal.keyName,
    model,
    stream,
    attempts: [],
    tariff,
    firstTokenAt: null,
    endedAt: null,
    status: 200,
    error: null,
    ending: null,
    measured: null,
    waived: false,
    estimated: false,
    usageInvalid: false,
    charge: 0n,
    price: null,
  }
}

/** The one end of every request: its slot goes back, it is charged and put on record, and its story is complete. */
export async function endStory(
  story: Story,
  ending: Ending,
  error: ErrorCode | null,
  call: Call,
  parts: StoryParts,
): Promise<void> {
  if (story.ending !== null) return
  parts.limiter.give(call.principal.accountId, call.requestId)
  story.ending = ending
  story.error = error
  story.endedAt = performance.now() - call.startedAt
  try {
    if (story.measured !== null && !story.waived) {
      const { amount, price } = chargeFor(story.tariff, story.measured)
      story.charge = amount
      story.price = price
    }
    const durable = parts.ledger.settle(recordOf(story, ending, story.endedAt))
    if (durable instanceof Promise) await durable
  } finally {
    parts.events.requestEnded(story)
    call.ended()
  }
}

/** Ends the story of a request that was refused or failed by an error. */
export async function endStoryWith(error: unknown, story: Story, call: Call, parts: StoryParts): Promise<void> {
  story.status = error instanceof GatewayError ? error.status : 500
  const code = error instanceof GatewayError ? error.code : "internal_error"
  await endStory(story, story.status < 500 ? "refused" : "failed", code, call, parts)
}
