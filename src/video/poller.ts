import type { VideoJob } from "../core/video-job.ts"
import { isUnavailable } from "../store/errors.ts"
import { claimDue, dueUpstreams, type Look, releaseClaims, renewClaims, saveLooks } from "../store/job-claims.ts"
import { videoVendors } from "../vendors/video/registry.ts"
import { fail, finish } from "./finish.ts"
import { lookAt, type Sight } from "./look.ts"
import type { VideoParts } from "./parts.ts"

/** How often the database is asked for jobs that are due. */
const tickMs = 250

/** For how long a job is this instance's to look at, and how often that is renewed while it does. */
export const leaseMs = 30_000
const renewEveryMs = 10_000

/** Looks at once: at one upstream, so that one that hangs delays no other, and in one claim. */
const mostPerUpstream = 256
const mostPerClaim = 128

/** Looks are written down together, this often; less often while the database is away. */
const writeEveryMs = 25
const writeAgainMs = 500

/** The time until the next look: it grows from look to look, and no two jobs keep in step. */
const polling = { firstMs: 2000, growth: 1.3, mostMs: 15_000, jitter: 0.1 } as const

/** A verdict that could not be written down is asked for again. */
const databaseAway = {
  kind: "goes_on",
  state: "queued",
  trouble: "the database was away when the job had ended",
  missingSince: null,
} as const

/** How long an instance that ends waits for looks that have begun. */
const farewellMs = 5000

export interface Poller {
  stop(): Promise<void>
}

/** Asks vendors after their jobs, whether or not callers do. Many instances share the work by claims on jobs. */
export async function openPoller(house: VideoParts): Promise<Poller> {
  // Nobody else works on a SQLite file: claims that stand there are those of a process that is gone.
  if (house.store.engine === "sqlite") await releaseClaims(house.store.db, null)
  const pool = new Pool(house)
  return { stop: () => pool.stop() }
}

class Pool {
  readonly #house: VideoParts
  readonly #stopping = new AbortController()
  readonly #busy = new Map<string, number>()
  /** Upstreams of which more is due than there was room for. */
  readonly #crowded = new Set<string>()
  readonly #inHand = new Map<string, Promise<void>>()
  /** How often jobs that are done could not be ended here. */
  readonly #tries = new Map<string, number>()
  #looks: Look[] = []
  #writing: Promise<void> | null = null
  #writeTimer: Timer | null = null
  #tickTimer: Timer
  #renewTimer: Timer
  #ticking: Promise<void> | null = null

  constructor(house: VideoParts) {
    this.#house = house
    this.#tickTimer = setTimeout(this.#tick, tickMs)
    this.#renewTimer = setInterval(() => this.#renew(), renewEveryMs)
  }

  async stop(): Promise<void> {
    clearTimeout(this.#tickTimer)
    this.#stopping.abort()
    await this.#ticking
    await Promise.race([Promise.allSettled(this.#inHand.values()), Bun.sleep(farewellMs)])
    clearInterval(this.#renewTimer)
    await this.#flush()
    // Others need not wait until the claims run out.
    await releaseClaims(this.#house.store.db, this.#house.instanceId).catch(() => {})
  }

  readonly #tick = (): void => {
    clearTimeout(this.#tickTimer)
    this.#ticking = this.#claim()
      .catch((error: unknown) => {
        if (!isUnavailable(error)) this.#house.events.internalError("poller", error)
      })
      .finally(() => {
        this.#ticking = null
        if (!this.#stopping.signal.aborted) this.#tickTimer = setTimeout(this.#tick, tickMs)
      })
  }

  /** Takes on what is due, upstream by upstream, as far as there is room. */
  async #claim(): Promise<void> {
    const { store, instanceId } = this.#house
    for (const upstreamId of (await dueUpstreams(store.db, Date.now())).keys()) {
      this.#crowded.add(upstreamId)
      for (;;) {
        const limit = Math.min(this.#roomAt(upstreamId), mostPerClaim)
        if (limit <= 0 || this.#stopping.signal.aborted) break
        const now = Date.now()
        const jobs = await claimDue(store, { owner: instanceId, now, leaseUntil: now + leaseMs, upstreamId, limit })
        for (const job of jobs) this.#take(job)
        if (jobs.length === limit) continue
        this.#crowded.delete(upstreamId)
        break
      }
    }
  }

  #take(job: VideoJob): void {
    const { upstreamId } = job.route
    this.#busy.set(upstreamId, (this.#busy.get(upstreamId) ?? 0) + 1)
    const work = this.#attend(job)
      .catch((error: unknown) => {
        // Otherwise the claim runs out by itself, and someone looks again.
        if (isUnavailable(error)) this.#goesOn(job, databaseAway)
        else this.#house.events.internalError(job.requestId, error)
      })
      .finally(() => {
        // After a long standstill the same job may be in hand again, under a new claim.
        if (this.#inHand.get(job.id) === work) this.#inHand.delete(job.id)
        this.#busy.set(upstreamId, this.#busy.get(upstreamId)! - 1)
        this.#refill(upstreamId)
      })
    this.#inHand.set(job.id, work)
  }

  #roomAt(upstreamId: string): number {
    return mostPerUpstream - (this.#busy.get(upstreamId) ?? 0)
  }

  /** What waits for room is not left waiting for the next tick as well. */
  #refill(upstreamId: string): void {
    if (!this.#crowded.has(upstreamId) || this.#roomAt(upstreamId) < mostPerClaim) return
    if (this.#ticking === null && !this.#stopping.signal.aborted) this.#tick()
  }

  async #attend(job: VideoJob): Promise<void> {
    const stop = this.#stopping.signal
    const sight = await lookAt(job, this.#house, stop)
    if (sight.kind === "failed") return fail(job, sight, this.#house)
    if (sight.kind === "goes_on") return this.#goesOn(job, sight)
    const tries = this.#tries.get(job.id) ?? 0
    this.#tries.delete(job.id)
    const finished = await finish(job, sight, this.#house, stop, tries)
    if (finished.kind === "over") return
    this.#tries.set(job.id, tries + 1)
    const { trouble } = finished
    this.#goesOn(job, { kind: "goes_on", state: "in_progress", trouble, missingSince: null })
  }

  #goesOn(job: VideoJob, sight: Extract<Sight, { kind: "goes_on" }>): void {
    const { kind: _kind, ...seen } = sight
    const lookedAt = Date.now()
    this.#looks.push({ id: job.id, fence: job.fence, ...seen, lookedAt, nextLookAt: lookedAt + untilNext(job) })
    this.#writeTimer ??= setTimeout(() => this.#flush(), writeEveryMs)
  }

  async #flush(): Promise<void> {
    this.#writeTimer = null
    await this.#writing
    const looks = this.#looks
    this.#looks = []
    if (looks.length === 0) return
    this.#writing = saveLooks(this.#house.store, looks).then(
      () => {},
      (error: unknown) => {
        if (isUnavailable(error)) this.#writeLater(looks)
        else this.#house.events.internalError("poller", error)
      },
    )
    await this.#writing
  }

  /** While the database is away looks are kept for it; claims that run out meanwhile make them void. */
  #writeLater(looks: readonly Look[]): void {
    this.#looks.unshift(...looks)
    if (!this.#stopping.signal.aborted) this.#writeTimer ??= setTimeout(() => this.#flush(), writeAgainMs)
  }

  #renew(): void {
    const ids = [...this.#inHand.keys()]
    if (ids.length === 0) return
    renewClaims(this.#house.store.db, this.#house.instanceId, ids, Date.now() + leaseMs).catch(() => {})
  }
}

/** Milliseconds from one look to the next. */
export function untilNext(job: { readonly polls: number; readonly route: Pick<VideoJob["route"], "vendor"> }): number {
  const grown = Math.min(polling.mostMs, polling.firstMs * polling.growth ** job.polls)
  const chance = 1 + polling.jitter * (2 * Math.random() - 1)
  // What a vendor asks for is kept to: there the chance only adds.
  const least = (videoVendors.get(job.route.vendor)?.leastPollMs ?? 0) * (1 + polling.jitter * Math.random())
  return Math.round(Math.max(grown * chance, least))
}
