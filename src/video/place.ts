import type { Call } from "../admission/call.ts"
import type { Route } from "../core/catalog.ts"
import { GatewayError } from "../core/errors.ts"
import type { AttemptRecord, Story } from "../core/story.ts"
import type { JobRoute, VideoJob } from "../core/video-job.ts"
import type { VideoImage, VideoSubmit, VideoSubmitted } from "../core/video-vendor.ts"
import { blankOut } from "../lib/bytes.ts"
import { pause } from "../lib/pause.ts"
import { countsAgainstHealth, type Failure, failure, verdictOn } from "../routing/failure.ts"
import { Itinerary, type Step } from "../routing/itinerary.ts"
import { openRecord } from "../routing/records.ts"
import { routingView } from "../routing/view.ts"
import { isUnavailable } from "../store/errors.ts"
import { failJob } from "../store/job-settlement.ts"
import { acceptJob, dropJob, insertJob, leaveInDoubt, moveJob } from "../store/jobs.ts"
import { writeTogether } from "../store/shared-commits.ts"
import { Unreachable, type VendorReply } from "../upstream/client.ts"
import type { Credential } from "../upstream/credentials.ts"
import { blankHeaders, clientHeaders } from "../upstream/headers.ts"
import type { VideoRequest } from "./ask.ts"
import type { Draft } from "./draft.ts"
import { askWith, type Offer } from "./offer.ts"
import { mayFetchPrivate, type VideoParts } from "./parts.ts"
import { pictureFor } from "./picture.ts"
import { sideFor, type VendorSide } from "./vendor-side.ts"

/** How long after the vendor has taken a job it is asked after for the first time. */
export const firstLookMs = 2000

/** For how long a submit is nobody else's: its own time limit, and time to write down how it ended. */
const submitLeaseMs = 30_000

/** For how long the database is asked to take a job that the vendor has taken; within the lease. */
const writingMs = 25_000

/** What callers are told of a job that may or may not have reached its vendor, and that no look-up can tell. */
const doubtText = "the vendor did not say whether it took the job, so it was not sent again; nothing is charged"

export interface Errand {
  readonly wanted: VideoRequest
  readonly offers: readonly Offer[]
  readonly call: Call
  readonly story: Story
}

export type Placed = { readonly kind: "placed"; readonly job: VideoJob } | Failure

/**
 * Sends a job to the first vendor that takes it. It is written down before it is sent, and never sent a second time once it
 * may have been delivered: then it stays, and the vendor is asked whether it has it.
 */
export async function place(draft: Draft, errand: Errand, house: VideoParts): Promise<Placed> {
  const itinerary = new Itinerary(
    errand.offers.map(({ route }) => route),
    routingView(house, ({ timeouts }) => errand.call.startedAt + timeouts.nonStream),
  )
  house.budget.requestCame()
  const placing = new Placing(draft, errand, house)
  let step = itinerary.first()
  if (step === null)
    throw new GatewayError(
      "backend_unavailable",
      "every upstream of this model is at its own limit of requests in flight",
    )
  let told: Failure | null = null
  for (;;) {
    const tried = await placing.tryAt(step)
    if (tried.kind === "placed") return tried
    // A route that could not even be asked must not hide why one that was asked failed.
    if (told === null || tried.cause !== "not_bridgeable") told = tried
    const next = itinerary.after(verdictOn(tried))
    if (next === null) {
      await placing.giveUp()
      return told
    }
    step = next
  }
}

/** One job on its way to a vendor. */
class Placing {
  readonly #draft: Draft
  readonly #errand: Errand
  readonly #house: VideoParts
  readonly #pictures = new Map<string, Promise<VideoImage>>()
  #written = false

  constructor(draft: Draft, errand: Errand, house: VideoParts) {
    this.#draft = draft
    this.#errand = errand
    this.#house = house
  }

  /** Asks one vendor. A failure means that the vendor certainly has no job of ours. */
  async tryAt(step: Step): Promise<Placed> {
    const { call } = this.#errand
    if (step.repeat) this.#house.budget.repeated()
    if (step.pauseMs > 0) await pause(step.pauseMs, call.request.signal)
    // For a caller who has left nothing is begun.
    if (call.request.signal.aborted) return failure("client_gone", "the caller left")
    const prepared = await this.#prepare(step.route)
    if ("kind" in prepared) return prepared
    const job: VideoJob = { ...this.#draft, route: prepared.route, attempts: this.#errand.story.attempts }
    const record = openRecord(step, this.#errand.story, call.startedAt)
    await this.#write(job)
    const { upstream } = step.route
    const permit = this.#house.health.circuit(upstream.id).enter()
    const leave = this.#house.load.enter(upstream)
    const outcome = await this.#send(prepared, AbortSignal.timeout(this.#timeLeft(step.route)))
    leave()
    closeRecord(record, outcome, call.startedAt)
    if (outcome.kind === "accepted" || (outcome.kind === "failure" && !countsAgainstHealth(outcome))) permit.succeed()
    else permit.fail()
    if (outcome.kind !== "failure") return this.#placed(job, outcome, prepared.side)
    this.#house.events.attemptFailed(this.#errand.story, record)
    return outcome
  }

  /** No vendor took it: it never was. */
  async giveUp(): Promise<void> {
    // Where the database is away just now, a look will find that there is nothing to it.
    if (!this.#written) return
    const { id, fence } = this.#draft
    await writeTogether(this.#house.store, (db) => dropJob(db, id, fence)).catch(() => false)
  }

  #timeLeft({ upstream }: Route): number {
    return Math.max(0, this.#errand.call.startedAt + upstream.timeouts.nonStream - performance.now())
  }

  /** Everything that can go wrong before something is sent. */
  async #prepare(route: Route): Promise<Prepared | Failure> {
    const { upstream, upstreamModel } = route
    const { wanted, call } = this.#errand
    const credential = this.#house.credential(upstream)
    const place: JobRoute = {
      upstreamId: upstream.id,
      upstream: upstream.name,
      vendor: upstream.vendor.name,
      upstreamModel,
      baseUrl: upstream.baseUrl,
      credentialDigest: credential.secret === null ? null : this.#house.digest(credential.secret),
      sentSeconds: null,
    }
    try {
      const side = sideFor(
        { ...this.#draft, route: place },
        upstream,
        credential.secret,
        this.#house,
        call.request.headers,
      )
      const image = wanted.image === null ? null : await this.#picture(wanted.image, side)
      const submit = side.vendor.submit(askWith(wanted, image), side.context)
      return { route: { ...place, sentSeconds: submit.seconds }, side, submit, credential }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      return { ...failure("not_bridgeable", error.message), error }
    }
  }

  /** Fetched at most once, however many vendors want its bytes. */
  #picture(image: string, { vendor }: VendorSide): Promise<VideoImage> {
    const { byUrl, byData } = vendor.images
    const form = `${byUrl} ${byData}`
    let picture = this.#pictures.get(form)
    if (picture === undefined) {
      picture = pictureFor(image, vendor.images, {
        allowPrivateAddresses: mayFetchPrivate(this.#house),
        signal: this.#errand.call.request.signal,
      })
      this.#pictures.set(form, picture)
    }
    return picture
  }

  async #write(job: VideoJob): Promise<void> {
    const { store } = this.#house
    if (this.#written) {
      await writeTogether(store, (db) => moveJob(db, job.id, job.fence, job.route, job.attempts))
      return
    }
    const leaseUntil = Date.now() + this.#longestSubmit() + submitLeaseMs
    await writeTogether(store, (db) => insertJob(db, job, { owner: this.#house.instanceId, leaseUntil }))
    this.#written = true
  }

  #longestSubmit(): number {
    return Math.max(...this.#errand.offers.map(({ route }) => route.upstream.timeouts.nonStream))
  }

  async #send({ side, submit, credential }: Prepared, signal: AbortSignal): Promise<Outcome> {
    let answer: VendorReply
    try {
      answer = await side.call(submit.call, signal, { once: true })
    } catch (error) {
      if (error instanceof Unreachable && error.unsent) return failure("unreachable", error.reason)
      return { kind: "doubt", why: side.blank(error instanceof Error ? error.message : String(error)) }
    }
    credential.report(answer.reply.status)
    const submitted = side.vendor.readSubmit(answer.reply, side.context)
    if (submitted.kind === "unreadable") return { kind: "doubt", why: side.blank(submitted.why) }
    if (submitted.kind === "accepted") return { ...submitted, status: answer.reply.status }
    return refusal({ ...submitted, message: side.blank(submitted.message) }, answer, side.secrets)
  }

  async #placed(job: VideoJob, outcome: Accepted | Doubt, { vendor }: VendorSide): Promise<Placed> {
    const { store } = this.#house
    const { id, fence, attempts } = job
    const now = Date.now()
    const nextLookAt = now + Math.max(firstLookMs, vendor.leastPollMs ?? 0)
    if (outcome.kind === "accepted") {
      const { ref, vendorId } = outcome
      const accepted = { ref, vendorId, route: job.route, attempts, submittedAt: now, nextLookAt }
      await untilWritten(() => writeTogether(store, (db) => acceptJob(db, id, fence, accepted)))
      return { kind: "placed", job: { ...job, state: "queued" } }
    }
    if (vendor.locate === undefined) {
      await writeTogether(store, (db) => moveJob(db, id, fence, job.route, attempts))
      await failJob(this.#house.store, { id, fence, finishedAt: now, error: doubtText, trouble: outcome.why })
    } else {
      const doubt = { nextLookAt, trouble: outcome.why, attempts }
      await writeTogether(store, (db) => leaveInDoubt(db, id, fence, doubt))
    }
    return { kind: "placed", job }
  }
}

/** The vendor has the job, so its reference must not be lost to a database that is away for a moment. */
async function untilWritten(write: () => Promise<boolean>): Promise<void> {
  const until = performance.now() + writingMs
  for (;;) {
    try {
      await write()
      return
    } catch (error) {
      if (!isUnavailable(error) || performance.now() > until) throw error
      await Bun.sleep(500)
    }
  }
}

interface Prepared {
  readonly route: JobRoute
  readonly side: VendorSide
  readonly submit: VideoSubmit
  readonly credential: Credential
}

type Accepted = Extract<VideoSubmitted, { kind: "accepted" }> & { readonly status: number }
/** Nobody knows whether the vendor has the job. */
interface Doubt {
  readonly kind: "doubt"
  readonly why: string
}
type Outcome = Accepted | Doubt | Failure

/** A refusal under the status it amounts to, which some vendors hide inside a 200; its text is the vendor's own. */
function refusal(
  refused: Extract<VideoSubmitted, { kind: "refused" }>,
  answer: VendorReply,
  secrets: readonly string[],
): Failure {
  const body = secrets.reduce((bytes, secret) => blankOut(bytes, secret, "***"), answer.bytes)
  const headers = secrets.reduce(blankHeaders, clientHeaders(answer.headers))
  return {
    ...failure("status", `${refused.status} ${refused.message}`),
    answer: { status: refused.status, headers, body },
  }
}

function closeRecord(record: AttemptRecord, outcome: Outcome, startedAt: number): void {
  record.endedAt = performance.now() - startedAt
  if (outcome.kind === "accepted") {
    record.outcome = "answered"
    record.status = outcome.status
  } else if (outcome.kind === "doubt") {
    record.outcome = "in_doubt"
    record.detail = outcome.why
  } else {
    record.outcome = outcome.cause
    record.status = outcome.answer?.status ?? null
    record.detail = outcome.detail
  }
}
