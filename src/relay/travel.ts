import type { Ask } from "../admission/ask.ts"
import type { Model, Route, Upstream } from "../core/catalog.ts"
import { GatewayError } from "../core/errors.ts"
import type { Events } from "../core/events.ts"
import type { AttemptRecord, Story } from "../core/story.ts"
import { pause } from "../lib/pause.ts"
import { countsAgainstHealth, type Failure, failure, verdictOn } from "../routing/failure.ts"
import { Itinerary, type Step } from "../routing/itinerary.ts"
import { openRecord } from "../routing/records.ts"
import { routingView, type ViewParts } from "../routing/view.ts"
import type { Credential } from "../upstream/credentials.ts"
import type { Answer } from "./answer.ts"
import { attempt } from "./attempt.ts"
import type { Protocol } from "./protocol.ts"

/** What the search for an answer uses of the house. */
export interface TravelParts extends ViewParts {
  readonly events: Events
  credential(upstream: Upstream): Credential
  /** Ids of upstreams that turned out to refuse `stream_options`. */
  readonly withoutStreamOptions: Set<string>
  /** Ends each running attempt or stream, for an instance that can wait no longer. */
  readonly running: Set<() => void>
}

/** One request on its way through the routes. */
export interface Journey {
  readonly ask: Ask
  readonly protocol: Protocol
  readonly model: Model
  readonly routes: readonly Route[]
  readonly request: Request
  readonly query: string
  /** Lets results be fetched from private addresses, for development. */
  readonly allowPrivateAddresses: boolean
  /** By `performance.now()`. */
  readonly startedAt: number
  readonly story: Story
}

/** An answer and the route that gave it; `leave` frees the upstream's place when the answer is over. */
export interface Answered {
  readonly kind: "answered"
  readonly route: Route
  readonly answer: Answer
  leave(): void
}

/** Asks routes in turn until one answers or none is left. Nothing has reached the caller while this runs. */
export async function findAnswer(journey: Journey, parts: TravelParts): Promise<Answered | Failure> {
  parts.budget.requestCame()
  const itinerary = new Itinerary(
    journey.routes,
    routingView(parts, (upstream) => deadlineOf(journey, upstream)),
  )
  let step = itinerary.first()
  if (step === null)
    throw new GatewayError(
      "backend_unavailable",
      "every upstream of this model is at its own limit of requests in flight",
    )
  let told: Failure | null = null
  for (;;) {
    const result = await take(step, journey, parts)
    if (result.kind === "answered") return result
    // A route that could not even be asked must not hide why one that was asked failed.
    if (told === null || result.cause !== "not_bridgeable") told = result
    const next = itinerary.after(verdictOn(result))
    if (next === null) return told
    step = next
  }
}

function deadlineOf({ ask, startedAt }: Journey, { timeouts }: Upstream): number {
  return startedAt + (ask.stream ? timeouts.total : timeouts.nonStream)
}

async function take(step: Step, journey: Journey, parts: TravelParts): Promise<Answered | Failure> {
  const { route } = step
  const { upstream } = route
  // Counted before the pause, or all who pause at the same time would share one permission.
  if (step.repeat) parts.budget.repeated()
  if (step.pauseMs > 0) await pause(step.pauseMs, journey.request.signal)
  // Asking for the signal is not free, so the first attempt does not.
  if (step.why !== "first" && journey.request.signal.aborted) {
    return failure("client_gone", "the caller left")
  }
  const permit = parts.health.circuit(upstream.id).enter()
  const leave = parts.load.enter(upstream)
  const record = openRecord(step, journey.story, journey.startedAt)
  const carriage = journey.protocol.carriage(route)
  const result = await attempt(route, {
    requestId: journey.story.requestId,
    ask: journey.ask,
    carriage,
    clientHeaders: journey.request.headers,
    query: journey.query,
    // A call that is not streamed is read to its end and charged, also when the caller has left; a job is cancelled.
    clientSignal: journey.ask.stream || carriage.kind === "job" ? journey.request.signal : null,
    credential: parts.credential(upstream),
    streamOptions: step.why !== "without_stream_options" && takesStreamOptions(upstream, parts),
    allowPrivateAddresses: journey.allowPrivateAddresses,
    deadline: deadlineOf(journey, upstream),
    running: parts.running,
  })
  closeRecord(record, result, journey)
  if (result.kind !== "failure") {
    permit.succeed()
    // Only an answer without the option proves that the option was the trouble, and not a field of the caller's.
    if (step.why === "without_stream_options") parts.withoutStreamOptions.add(upstream.id)
    return { kind: "answered", route, answer: result, leave }
  }
  leave()
  if (countsAgainstHealth(result)) permit.fail()
  else if (result.cause === "status") permit.succeed()
  else permit.withdraw()
  parts.events.attemptFailed(journey.story, record)
  return result
}

function takesStreamOptions(upstream: Upstream, parts: TravelParts): boolean {
  if (upstream.vendor.quirks?.noStreamOptions || upstream.settings.no_stream_options === true) return false
  return !parts.withoutStreamOptions.has(upstream.id)
}

function closeRecord(record: AttemptRecord, result: Answer | Failure, journey: Journey): void {
  record.endedAt = performance.now() - journey.startedAt
  if (result.kind === "failure") {
    record.outcome = result.cause
    record.status = result.answer?.status ?? null
    record.detail = result.detail
  } else {
    record.outcome = "answered"
    record.status = result.kind === "stream" ? 200 : result.status
  }
}
