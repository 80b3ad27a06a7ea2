import type { TokenCounter } from "../billing/tokens.ts"
import { concurrencyLimit, planAllows, planOf } from "../catalog/plans.ts"
import type { Route, Snapshot } from "../core/catalog.ts"
import type { ErrorDialect } from "../core/endpoints.ts"
import { type ErrorCode, GatewayError } from "../core/errors.ts"
import type { Principal } from "../core/principal.ts"
import type { Ending, Story } from "../core/story.ts"
import type { TokenUsage } from "../core/usage.ts"
import type { Limiter } from "../limits/limiter.ts"
import { streamHeaders } from "../upstream/headers.ts"
import type { BegunFlow, BegunStream, WholeAnswer } from "./answer.ts"
import { readAsk } from "./ask.ts"
import { deliver, type StreamEnd } from "./delivery.ts"
import { errorFor, type Failure } from "./failure.ts"
import { passOn } from "./flow.ts"
import type { Protocol } from "./protocol.ts"
import { type Answered, findAnswer, type Journey, type TravelParts } from "./travel.ts"

/** Nobody is there to read it; the number is for logs, as nginx writes it. */
const clientClosedRequest = 499

/** One admitted call of the model API. */
export interface Call {
  readonly requestId: string
  readonly request: Request
  /** The query string with its question mark, or nothing. */
  readonly query: string
  readonly principal: Principal
  readonly dialect: ErrorDialect
  /** By `performance.now()`. */
  readonly startedAt: number
  /** To be called exactly once when the response is over, unless `relay` throws. */
  ended(): void
}

export interface RelayParts extends TravelParts {
  readonly limiter: Limiter
  readonly counter: TokenCounter
  readonly allowPrivateAddresses: boolean
  snapshot(): Snapshot
}

/** One request, told in order: read it, admit it, find a route that answers, pass the answer on. */
export async function relay(call: Call, protocol: Protocol, house: RelayParts): Promise<Response> {
  const ask = await readAsk(call.request, protocol)
  const snapshot = house.snapshot()
  const routes = routesFor(ask.model, snapshot, call.principal, protocol)
  requireBalance(call.principal)
  const slot = takeSlot(call, snapshot, house.limiter)
  if (slot instanceof Promise) await slot
  const story = beginStory(call, protocol, ask.model, ask.stream)
  const journey: Journey = {
    ask,
    protocol,
    routes,
    request: call.request,
    query: call.query,
    allowPrivateAddresses: snapshot.allowPrivateAddresses || house.allowPrivateAddresses,
    startedAt: call.startedAt,
    story,
  }
  try {
    const found = await findAnswer(journey, house)
    if (found.kind === "failure") return await refuse(found, journey, call, house)
    return await hand(found, journey, call, house)
  } catch (error) {
    await endStory(story, "failed", error instanceof GatewayError ? error.code : "internal_error", call, house)
    throw error
  }
}

/** Unknown and not allowed are one answer, so that a plan does not reveal what others have. */
function routesFor(name: string, snapshot: Snapshot, principal: Principal, protocol: Protocol): readonly Route[] {
  const model = snapshot.models.get(name)
  if (model === undefined || !planAllows(planOf(snapshot, principal), name)) {
    throw new GatewayError(
      "model_not_found",
      `the model "${printable(name)}" does not exist or you do not have access to it`,
    )
  }
  const routes = snapshot.routes(model, protocol.endpoint)
  if (routes.length === 0) {
    throw new GatewayError("model_not_found", `the model "${printable(name)}" is not available on this endpoint`)
  }
  return routes
}

function requireBalance(principal: Principal): void {
  if (principal.balance > 0n) return
  throw new GatewayError("insufficient_balance", "the account's balance is used up; top it up to go on", {
    headers: { "x-should-retry": "false" },
  })
}

/** Waits only where the limiter does: within one process there is nothing to wait for. */
function takeSlot(call: Call, snapshot: Snapshot, limiter: Limiter): Promise<void> | void {
  const { principal } = call
  const limit = concurrencyLimit(planOf(snapshot, principal), principal)
  const taken = limiter.take(principal.accountId, limit, call.requestId)
  return taken instanceof Promise ? taken.then(refuseUnless) : refuseUnless(taken)
}

function refuseUnless(taken: boolean): void {
  if (!taken) throw new GatewayError("concurrency_limit", "concurrency limit reached")
}

/** Hands an answer to the caller: at once, as a stream of events, or as it comes. */
function hand(found: Answered, journey: Journey, call: Call, house: RelayParts): Response | Promise<Response> {
  switch (found.answer.kind) {
    case "whole":
      return pass(found, found.answer, journey.story, call, house)
    case "stream":
      return stream(found, found.answer, journey, call, house)
    case "flow":
      return flow(found, found.answer, journey, call, house)
  }
}

async function pass(
  found: Answered,
  answer: WholeAnswer,
  story: Story,
  call: Call,
  house: RelayParts,
): Promise<Response> {
  found.leave()
  story.status = answer.status
  story.usage = answer.usage
  await endStory(story, "completed", null, call, house)
  const isStream = answer.headers["content-type"]?.startsWith("text/event-stream")
  const headers = isStream ? Object.assign(answer.headers, streamHeaders) : answer.headers
  headers["x-request-id"] = call.requestId
  return new Response(answer.body, { status: answer.status, headers })
}

function stream(found: Answered, begun: BegunStream, journey: Journey, call: Call, house: RelayParts): Response {
  const { story } = journey
  const { timeouts } = found.route.upstream
  const count = async (): Promise<TokenUsage> => {
    story.estimated = true
    story.usage = await house.counter.count(journey.ask.body.whole(), begun.tap.produced)
    return story.usage
  }
  story.firstTokenAt = performance.now() - call.startedAt
  return deliver(begun, {
    requestId: call.requestId,
    dialect: call.dialect,
    silenceMs: timeouts.silence,
    deadline: call.startedAt + timeouts.total,
    count,
    ...untilItsEnd(found, story, call, house, async () => {
      story.usage = begun.tap.usage ?? story.usage
      // What an unfinished stream has produced was still produced: it is counted where the upstream did not say.
      if (story.usage === null && begun.tap.countable && !begun.tap.failed) await count()
    }),
  })
}

function flow(found: Answered, begun: BegunFlow, { story }: Journey, call: Call, house: RelayParts): Response {
  story.status = begun.status
  story.firstTokenAt = performance.now() - call.startedAt
  const deadline = call.startedAt + found.route.upstream.timeouts.nonStream
  return passOn(begun, {
    requestId: call.requestId,
    deadline,
    ...untilItsEnd(found, story, call, house, async () => {}),
  })
}

/** What every answer that takes its time has in common: it can be cut, and at its end everything it held goes back. */
function untilItsEnd(found: Answered, story: Story, call: Call, house: RelayParts, settle: () => Promise<void>) {
  let cut: () => void = () => {}
  return {
    onStart(endNow: () => void) {
      cut = endNow
      house.running.add(cut)
    },
    async onEnd({ ending, error }: StreamEnd) {
      house.running.delete(cut)
      found.leave()
      house.limiter.give(call.principal.accountId, call.requestId)
      if (error === "upstream_stream_truncated" || error === "stream_silence_timeout")
        house.health.circuit(found.route.upstream.id).trouble()
      await settle()
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
  if (answer === undefined || answer.status >= 500) throw errorFor(failure, journey.ask.stream)
  journey.story.status = answer.status
  await endStory(journey.story, "refused", null, call, house)
  const headers = { ...answer.headers, "x-request-id": call.requestId }
  return new Response(answer.body, { status: answer.status, headers })
}

function beginStory(call: Call, protocol: Protocol, model: string, asStream: boolean): Story {
  return {
    requestId: call.requestId,
    endpoint: protocol.endpoint,
    account: call.principal.accountName,
    key: call.principal.keyName,
    model,
    stream: asStream,
    attempts: [],
    firstTokenAt: null,
    endedAt: null,
    status: 200,
    error: null,
    ending: null,
    usage: null,
    estimated: false,
  }
}

/** The one end of every admitted request: its slot goes back and its story is complete. */
async function endStory(
  story: Story,
  ending: Ending,
  error: ErrorCode | null,
  call: Call,
  house: RelayParts,
): Promise<void> {
  house.limiter.give(call.principal.accountId, call.requestId)
  story.ending = ending
  story.error = error
  story.endedAt = performance.now() - call.startedAt
  house.events.requestEnded(story)
  call.ended()
}

function printable(name: string): string {
  return JSON.stringify(name.slice(0, 100)).slice(1, -1)
}
