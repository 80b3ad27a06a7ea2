import type { TokenCounter } from "../billing/tokens.ts"
import type { Endpoint } from "../core/endpoints.ts"
import { type Measured, nothingMeasured, type Reading } from "../core/measured.ts"
import { type PriceUnit, type Tariff, unitsOf } from "../core/price.ts"
import type { TokenUsage } from "../core/usage.ts"
import type { Journey } from "./travel.ts"

const noBytes = new Uint8Array(0)
/** Endpoints that are about tokens: how many it took is worth knowing whatever the price. */
const madeOfTokens: ReadonlySet<Endpoint> = new Set(["chat", "responses", "messages", "embeddings"])
const tokenUnits: readonly PriceUnit[] = [
  "input",
  "cached_input",
  "cache_write",
  "audio_input",
  "output",
  "audio_output",
]

/** How many pictures an answer counts for that does not say: it was a success, so there was one. */
const unsaidImages = 1

/** Models that hear take a token for each tenth of a second. */
const microsecondsPerSoundToken = 100_000

/** Where the text comes from that is counted, should it come to that. */
export interface Countable {
  produced(): string
}

/**
 * Puts down what an answer is charged by: what the upstream said, what the request tells, and, for units that the price
 * asks for and nobody has said, an estimate that is marked as such. Answers at once where nothing has to be counted.
 */
export function measure(
  journey: Journey,
  reading: Reading,
  answer: Countable,
  counter: TokenCounter,
): Promise<void> | void {
  const { story, ask, protocol } = journey
  const said = combined(protocol.measureRequest?.(ask) ?? {}, reading.measured)
  const units = unitsOf(story.tariff.price)
  const measured = {
    ...said,
    images: said.images ?? (units.has("image") ? unsaidImages : null),
    microseconds: said.microseconds ?? (units.has("second") ? (protocol.estimateLength?.(ask) ?? null) : null),
  }
  story.measured = measured
  story.usageInvalid = reading.invalid
  story.estimated ||= measured.images !== said.images || measured.microseconds !== said.microseconds
  if (said.tokens !== null || !(madeOfTokens.has(protocol.endpoint) || pricedByTokens(story.tariff))) return
  return countTokens(journey, answer, counter).then((tokens) => {
    story.measured = { ...measured, tokens }
  })
}

export function pricedByTokens({ price }: Tariff): boolean {
  const units = unitsOf(price)
  return tokenUnits.some((unit) => units.has(unit))
}

/** Counts the request and what came of it, and marks the story as estimated. */
export async function countTokens(journey: Journey, answer: Countable, counter: TokenCounter): Promise<TokenUsage> {
  const { ask, protocol, story, model } = journey
  story.estimated = true
  const counted = await counter.count({
    endpoint: protocol.endpoint,
    requestBody: ask.shape === null ? noBytes : ask.body,
    produced: answer.produced(),
    tokenizer: model.tokenizer,
  })
  const heard = Math.ceil((protocol.estimateLength?.(ask) ?? 0) / microsecondsPerSoundToken)
  return heard === 0 ? counted : { ...counted, input: counted.input + heard, audioInput: heard }
}

/** What the answer says counts; the request's word stands where the answer has none. */
function combined(asked: Partial<Measured>, answered: Partial<Measured>): Measured {
  return {
    ...nothingMeasured,
    ...asked,
    ...answered,
    size: answered.size ?? asked.size ?? null,
    quality: answered.quality ?? asked.quality ?? null,
  }
}
