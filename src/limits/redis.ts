import { type HeldSlots, heldSlots } from "./held-slots.ts"
import type { Limiter } from "./limiter.ts"
import { LinkKeeper } from "./link-keeper.ts"
import type { RedisLink } from "./redis-link.ts"
import { beatHeart, countSlots, holdSlots, takeSlot } from "./slots.lua.ts"

export interface RedisLimiterOptions {
  readonly url: string
  /** Unlike that of any other instance. */
  readonly instanceId: string
  /** Called when Redis is out of reach, and when it is back; never twice in a row with the same word. */
  readonly onDegraded?: (away: boolean, why: string) => void
  /** Milliseconds of a clock that is never set back. */
  readonly now?: () => number
  readonly leaseMs?: number
  readonly renewMs?: number
  readonly retryMs?: number
  readonly patienceMs?: number
}

export interface RedisLimiter extends Limiter {
  take(account: string, limit: number, lease: string): Promise<boolean>
  inFlight(account: string): Promise<number>
  /** Redis is out of reach, and this instance keeps to its own share of each limit. */
  readonly away: boolean
  /** Live ones as last known, this one among them. */
  readonly instances: number
  /** Resolved, never rejected, once it is known whether Redis is there. */
  readonly ready: Promise<void>
  /** Gives back all that is held and says goodbye to the other instances. */
  close(): Promise<void>
}

const defaults = {
  leaseMs: 30_000,
  renewMs: 10_000,
  retryMs: 1000,
  patienceMs: 250,
  now: () => performance.now(),
  onDegraded: () => {},
} satisfies Partial<RedisLimiterOptions>

const instancesKey = "tollgate:instances"
const slotsKey = (account: string): string => `tollgate:slots:${account}`

const slotTaken = 1
const leasesLost = -1

/** Leases told in one call, so that no script keeps Redis from others for long. */
const leasesPerCall = 500
/** Accounts renewed at once: a queue longer than the patience of a call would look like a Redis that does not answer. */
const accountsAtOnce = 64

/** Slots shared by all instances through Redis; without Redis each instance keeps to its share of every limit. */
export function redisLimiter(options: RedisLimiterOptions): RedisLimiter {
  return new RedisSlots({ ...defaults, ...options })
}

class RedisSlots implements RedisLimiter {
  readonly #options: Required<RedisLimiterOptions>
  readonly #keeper: LinkKeeper
  readonly #renewal: ReturnType<typeof setInterval>
  /** Each slot with the link that Redis may have heard of it by; null: it has not. */
  readonly #held: HeldSlots<RedisLink | null> = heldSlots()
  /** Leases that are over but may stand in Redis, until they have run out there by themselves. */
  #owed: { readonly account: string; readonly lease: string; readonly until: number }[] = []
  #instances = 1
  #beenOpen = false
  #forgotten = false
  #settlingUntil = Number.NEGATIVE_INFINITY
  #renewing = false

  constructor(options: Required<RedisLimiterOptions>) {
    this.#options = options
    this.#keeper = new LinkKeeper({
      ...options,
      prepare: (link) => this.#prepare(link),
      onOpened: (link, attempts) => this.#opened(link, attempts),
      onAway: options.onDegraded,
    })
    this.#renewal = setInterval(() => void this.#renew(), options.renewMs)
  }

  get away(): boolean {
    return this.#keeper.away
  }

  get instances(): number {
    return this.#instances
  }

  get ready(): Promise<void> {
    return this.#keeper.ready
  }

  async take(account: string, limit: number, lease: string): Promise<boolean> {
    await this.#keeper.ready
    const link = this.#keeper.link
    if (link === undefined) return this.#takeAlone(account, limit, lease, null)
    if (limit === 0) {
      // Nothing can refuse it, so it does not wait for the answer.
      this.#hold(link, account, [lease]).catch(ignoreLostLink)
      return true
    }
    if (this.#isFull(account, limit)) return false
    const taken = await this.#ask(link, account, limit, lease)
    if (taken === undefined) return this.#takeAlone(account, limit, lease, link)
    if (!taken) return false
    // Others of this instance may have come first while Redis was short of their leases, or before all were back in it.
    if (this.#isFull(account, limit)) {
      this.#drop(link, account, [lease])
      return false
    }
    this.#held.set(account, lease, link)
    return true
  }

  give(account: string, lease: string): void {
    const toldBy = this.#held.delete(account, lease)
    if (toldBy === undefined || toldBy === null) return
    const link = this.#keeper.link
    if (link === undefined) this.#owe(account, [lease])
    else this.#drop(link, account, [lease])
  }

  async inFlight(account: string): Promise<number> {
    await this.#keeper.ready
    const shared = await this.#keeper.link?.run(countSlots, slotsKey(account)).catch(ignoreLostLink)
    return Math.max(Number(shared ?? 0), this.#held.count(account))
  }

  async close(): Promise<void> {
    clearInterval(this.#renewal)
    const link = this.#keeper.link
    if (link !== undefined) {
      for (const account of this.#held.accounts()) {
        const leases = this.#held.leases(account)
        for (const lease of leases) this.#held.delete(account, lease)
        for (const batch of inBatches(leases, leasesPerCall)) this.#drop(link, account, batch)
      }
      // Answered after all that was sent before it.
      await link.call("ZREM", instancesKey, this.#options.instanceId).catch(ignoreLostLink)
    }
    this.#keeper.close()
  }

  #takeAlone(account: string, limit: number, lease: string, toldBy: RedisLink | null): boolean {
    if (limit > 0 && this.#held.count(account) >= this.#shareOf(limit)) {
      if (toldBy !== null) this.#owe(account, [lease])
      return false
    }
    this.#held.set(account, lease, toldBy)
    return true
  }

  #shareOf(limit: number): number {
    return Math.max(1, Math.floor(limit / this.#instances))
  }

  /** By what this instance holds alone, which is in flight for certain, whatever Redis knows. */
  #isFull(account: string, limit: number): boolean {
    const settling = this.#options.now() < this.#settlingUntil
    return this.#held.count(account) >= (settling ? this.#shareOf(limit) : limit)
  }

  /** Asks Redis for a slot; no answer if the link is lost. */
  async #ask(link: RedisLink, account: string, limit: number, lease: string): Promise<boolean | undefined> {
    const { leaseMs } = this.#options
    const key = slotsKey(account)
    try {
      const answer = await link.run(takeSlot, key, lease, limit, leaseMs, this.#held.count(account))
      if (answer !== leasesLost) return answer === slotTaken
      // Redis was emptied: it is told what is held before it decides again.
      this.#hold(link, account, this.#held.leases(account)).catch(ignoreLostLink)
      return (await link.run(takeSlot, key, lease, limit, leaseMs, 0)) === slotTaken
    } catch {
      return undefined
    }
  }

  /** Holds leases, and records them in Redis or renews them there. */
  async #hold(link: RedisLink, account: string, leases: readonly string[]): Promise<void> {
    for (const lease of leases) this.#held.set(account, lease, link)
    const key = slotsKey(account)
    const batches = inBatches(leases, leasesPerCall)
    await Promise.all(batches.map((batch) => link.run(holdSlots, key, this.#options.leaseMs, ...batch)))
    // A script that had to be sent anew may have come after the word that a lease is over.
    this.#drop(
      link,
      account,
      leases.filter((lease) => !this.#held.has(account, lease)),
    )
  }

  #drop(link: RedisLink, account: string, leases: readonly string[]): void {
    if (leases.length === 0) return
    link.call("ZREM", slotsKey(account), ...leases).catch(() => this.#owe(account, leases))
  }

  #owe(account: string, leases: readonly string[]): void {
    const until = this.#options.now() + this.#options.leaseMs
    for (const lease of leases) this.#owed.push({ account, lease, until })
  }

  /** Told again with every renewal, because what a lost link had under way may still arrive after the first time. */
  #dropOwed(link: RedisLink): void {
    this.#forgetSettled()
    for (const { account, lease } of this.#owed) link.call("ZREM", slotsKey(account), lease).catch(ignoreLostLink)
  }

  /** What has run out in Redis by now is no longer owed, nor is what was taken anew under the same name. */
  #forgetSettled(): void {
    const now = this.#options.now()
    this.#owed = this.#owed.filter(({ account, lease, until }) => until > now && !this.#held.has(account, lease))
  }

  async #prepare(link: RedisLink): Promise<void> {
    const { live, known } = await this.#beat(link)
    // Not fewer than before: after a loss of data the others are yet to be heard of.
    this.#instances = Math.max(this.#instances, live)
    this.#forgotten = this.#beenOpen && !known
    this.#forgetSettled()
    await this.#holdAll(link)
  }

  #opened(link: RedisLink, attempts: number): void {
    this.#beenOpen = true
    // Taken while the others were being told.
    for (const account of this.#held.accounts()) {
      this.#hold(link, account, this.#held.leasesWithout(account, link)).catch(ignoreLostLink)
    }
    this.#dropOwed(link)
    // Until every instance has found back and told what it holds, Redis knows too little to give out whole limits.
    if (attempts > 1 || this.#forgotten) this.#settlingUntil = this.#options.now() + 2 * this.#options.retryMs
  }

  async #renew(): Promise<void> {
    const link = this.#keeper.link
    if (link === undefined || this.#renewing) return
    this.#renewing = true
    try {
      this.#instances = (await this.#beat(link)).live
      await this.#holdAll(link)
      this.#dropOwed(link)
    } catch {
      // The link is lost; all is told again by the next one.
    } finally {
      this.#renewing = false
    }
  }

  async #holdAll(link: RedisLink): Promise<void> {
    for (const accounts of inBatches(this.#held.accounts(), accountsAtOnce)) {
      await Promise.all(accounts.map((account) => this.#hold(link, account, this.#held.leases(account))))
    }
  }

  async #beat(link: RedisLink): Promise<{ live: number; known: boolean }> {
    const { instanceId, leaseMs } = this.#options
    const answer = await link.run(beatHeart, instancesKey, instanceId, leaseMs)
    const [live, known] = Array.isArray(answer) ? answer : []
    return { live: Math.max(1, Number(live) || 1), known: known === 1 }
  }
}

/** Whoever keeps the link has been told, and a new one brings Redis up to date. */
function ignoreLostLink(): void {}

function inBatches<T>(items: readonly T[], size: number): readonly T[][] {
  const batches: T[][] = []
  for (let at = 0; at < items.length; at += size) batches.push(items.slice(at, at + size))
  return batches
}
