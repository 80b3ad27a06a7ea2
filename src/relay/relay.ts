import { readAsk } from "../admission/ask.ts"
import type { Call } from "../admission/call.ts"
import { modelFor, takeSlot } from "../admission/gates.ts"
import { beginStory, endStory, endStoryWith, type StoryParts } from "../admission/story.ts"
import type { TokenCounter } from "../billing/tokens.ts"
import { planOf } from "../catalog/plans.ts"
import { tariffFor } from "../catalog/tariffs.ts"
import type { Snapshot } from "../core/catalog.ts"
import type { ErrorDialect } from "../core/endpoints.ts"
import { nothingRead } from "../core/measured.ts"
import type { Story } from "../core/story.ts"
import type { TokenUsage } from "../core/usage.ts"
import { errorFor, type Failure, verdictOn } from "../routing/failure.ts"
import { streamHeaders } from "../upstream/headers.ts"
import type { BegunFlow, BegunStream, WholeAnswer } from "./answer.ts"
import { deliver, type StreamEnd } from "./delivery.ts"
import { passOn } from "./flow.ts"
import { countTokens, measure, pricedByTokens } from "./measure.ts"
import type { Protocol } from "./protocol.ts"
import { type Answered, findAnswer, type Journey, type TravelParts } from "./travel.ts"

/** Nobody is there to read it; the number is for logs, as nginx writes it. */
const clientClosedRequest = 499

/** How the messages dialect says that a vendor is overloaded. */
const overloaded = 529

export interface RelayParts extends TravelParts, StoryParts {
  readonly counter: TokenCounter
  readonly allowPrivateAddresses: boolean
  snapshot(): Snapshot
}

/** One request, told in order: read it, admit it, find a route that answers, pass the answer on. */
export async function relay(call: Call, protocol: Protocol, house: RelayParts): Promise<Response> {
  const ask = await readAsk(call.request, protocol)
  const snapshot = house.snapshot()
  const plan = planOf(snapshot, call.principal)
  const { model, routes } = modelFor(ask.model, snapshot, plan, protocol.endpoint)
  const story = beginStory(call, protocol.endpoint, ask, tariffFor(snapshot, model, plan))
  try {
    const admitted = house.ledger.admit(call.principal.accountId)
    if (admitted instanceof Promise) await admitted
    const slot = takeSlot(call, plan, house.limiter)
    if (slot instanceof Promise) await slot
    const journey: Journey = {
      ask,
      protocol,
      model,
      routes: protocol.answersHere === undefined ? routes : routes.filter((route) => !protocol.answersHere?.(route)),
      request: call.request,
      query: call.query,
      allowPrivateAddresses: snapshot.allowPrivateAddresses || house.allowPrivateAddresses,
      startedAt: call.startedAt,
      story,
    }
    story.waived = protocol.waived ?? false
    if (protocol.answersHere?.(routes[0]!)) return await countHere(journey, call, house)
    const found = await findAnswer(journey, house)
    if (found.kind === "failure") {
      const mayCountHere = journey.routes.length < routes.length && verdictOn(found).go !== "stop"
      return await (mayCountHere ? countHere(journey, call, house) : refuse(found, journey, call, house))
    }
    return await hand(found, journey, call, house)
  } catch (error) {
    await endStoryWith(error, story, call, house)
    throw error
  }
}

/** Answers with the tokens of the request, where no upstream is asked for them. */
async function countHere(journey: Journey, call: Call, house: RelayParts): Promise<Response> {
  const { input } = await countTokens(journey, { produced: () => "" }, house.counter)
  await endStory(journey.story, "completed", null, call, house)
  return Response.json({ input_tokens: input }, { headers: { "x-request-id": call.requestId } })
}

/** Hands an answer to the caller: at once, as a stream of events, or as it comes. */
function hand(found: Answered, journey: Journey, call: Call, house: RelayParts): Response | Promise<Response> {
  switch (found.answer.kind) {
    case "whole":
      return pass(found, found.answer, journey, call, house)
    case "stream":
      return stream(found, found.answer, journey, call, house)
    case "flow":
      return flow(found, found.answer, journey, call, house)
  }
}

async function pass(
  found: Answered,
  answer: WholeAnswer,
  journey: Journey,
  call: Call,
  house: RelayParts,
): Promise<Response> {
  const { story } = journey
  found.leave()
  story.status = answer.status
  const measuring = journey.protocol.waived ? undefined : measure(journey, answer.reading, answer, house.counter)
  if (measuring instanceof Promise) await measuring
  await endStory(story, "completed", null, call, house)
  const isStream = answer.headers["content-type"]?.startsWith("text/event-stream")
  const headers = isStream ? Object.assign(answer.headers, streamHeaders) : answer.headers
  headers["x-request-id"] = call.requestId
  const tokens = story.measured?.tokens ?? null
  const body = answer.counted === undefined || tokens === null ? answer.body : answer.counted(tokens)
  return new Response(body, { status: answer.status, headers })
}

function stream(found: Answered, begun: BegunStream, journey: Journey, call: Call, house: RelayParts): Response {
  const { story } = journey
  const { tap } = begun
  const { timeouts } = found.route.upstream
  const answer = { produced: () => tap.produced }
  let counted: TokenUsage | null = null
  story.firstTokenAt = performance.now() - call.startedAt
  return deliver(begun, {
    requestId: call.requestId,
    dialect: call.dialect,
    silenceMs: timeouts.silence,
    deadline: call.startedAt + timeouts.total,
    async count() {
      counted = await countTokens(journey, answer, house.counter)
      return counted
    },
    ...untilItsEnd(found, story, call, house, ({ ending }) => {
      // What an unfinished stream has produced was still produced, but only where tokens are what it is made of.
      if (ending === "failed" && !tap.countable) return
      story.waived ||= tap.failed === true || (ending === "failed" && !pricedByTokens(story.tariff))
      if (tap.failed && tap.usage === null) return
      const measured = tap.measured ?? { tokens: tap.usage ?? counted }
      return measure(journey, { measured, invalid: tap.usageInvalid }, answer, house.counter)
    }),
  })
}

function flow(found: Answered, begun: BegunFlow, journey: Journey, call: Call, house: RelayParts): Response {
  const { story } = journey
  story.status = begun.status
  story.firstTokenAt = performance.now() - call.startedAt
  const deadline = call.startedAt + found.route.upstream.timeouts.nonStream
  return passOn(begun, {
    requestId: call.requestId,
    deadline,
    ...untilItsEnd(found, story, call, house, ({ ending }) => {
      if (ending === "failed") return
      const { meter } = begun
      return measure(journey, meter?.end() ?? nothingRead, { produced: () => meter?.produced?.() ?? "" }, house.counter)
    }),
  })
}

/** What every answer that takes its time has in common: it can be cut, and at its end everything it held goes back. */
function untilItsEnd(
  found: Answered,
  story: Story,
  call: Call,
  house: RelayParts,
  measured: (end: StreamEnd) => Promise<void> | void,
) {
  let cut: () => void = () => {}
  return {
    onStart(endNow: () => void) {
      cut = endNow
      house.running.add(cut)
    },
    async onEnd(end: StreamEnd) {
      const { ending, error } = end
      house.running.delete(cut)
      found.leave()
      house.limiter.give(call.principal.accountId, call.requestId)
      if (error === "upstream_stream_truncated" || error === "stream_silence_timeout")
        house.health.circuit(found.route.upstream.id).trouble()
      const measuring = measured(end)
      if (measuring instanceof Promise) await measuring
      await endStory(story, ending, error, call, house)
    },
  }
}

/** The last upstream's 4xx is the caller's to read; anything else becomes an error of ours. */
async function refuse(failure: Failure, journey: Journey, call: Call, house: RelayParts): Promise<Response> {
  const { answer, cause } = failure
  if (cause === "client_gone") {
    await endStory(journey.story, "client_gone", null, call, house)
    return new Response(null, { status: clientClosedRequest, headers: { "x-request-id": call.requestId } })
  }
  const status = answer === undefined ? null : statusFor(answer.status, call.dialect)
  if (answer === undefined || status === null) throw errorFor(failure, journey.ask.stream)
  journey.story.status = status
  await endStory(journey.story, status < 500 ? "refused" : "failed", null, call, house)
  return new Response(answer.body, { status, headers: { ...answer.headers, "x-request-id": call.requestId } })
}

/** The status to pass an upstream's error under; null: it is not passed. Messages clients know overload by a status of its own. */
function statusFor(status: number, dialect: ErrorDialect): number | null {
  if (status < 500) return status
  return dialect === "messages" && (status === 503 || status === overloaded) ? overloaded : null
}
