import type { CircuitState } from "../core/events.ts"

/** When an upstream is left alone, and when it is tried again. */
export const circuitRules = {
  failuresInARow: 5,
  windowMs: 30_000,
  windowLeast: 10,
  windowShare: 0.5,
  openMs: 15_000,
} as const

const bucketMs = 1000
const buckets = circuitRules.windowMs / bucketMs

/** A permission to ask an upstream once; exactly one of the endings must be called. */
export interface Permit {
  /** The one trial call of an upstream that was left alone. */
  readonly probe: boolean
  succeed(): void
  fail(): void
  /** The call said nothing about the upstream's health, for instance because the client left. */
  withdraw(): void
}

/** Health of one upstream: opens after failures, lets one probe through after a while, closes on its success. */
export class Circuit {
  readonly #now: () => number
  readonly #onChange: (state: CircuitState) => void
  #row = 0
  #openedAt: number | null = null
  #probing = false
  readonly #failures = new Int32Array(buckets)
  readonly #calls = new Int32Array(buckets)
  readonly #stamps = new Float64Array(buckets)

  constructor(now: () => number, onChange: (state: CircuitState) => void = () => {}) {
    this.#now = now
    this.#onChange = onChange
  }

  get state(): CircuitState {
    if (this.#openedAt === null) return "closed"
    return this.#now() - this.#openedAt >= circuitRules.openMs ? "half_open" : "open"
  }

  /** When it last opened; null while closed. */
  get openedAt(): number | null {
    return this.#openedAt
  }

  /** Whether a call may be made now: always while closed, and one at a time once the pause is over. */
  get admits(): boolean {
    const state = this.state
    return state === "closed" || (state === "half_open" && !this.#probing)
  }

  /** Takes a permit, also for an open circuit: the caller asks `admits` first, or has no other route. */
  enter(): Permit {
    const probe = this.#openedAt !== null
    if (probe) this.#probing = true
    let ended = false
    const end = (verdict: () => void) => {
      if (ended) return
      ended = true
      if (probe) this.#probing = false
      verdict()
    }
    return {
      probe,
      succeed: () => end(() => this.#succeeded(probe)),
      fail: () => end(() => this.#failed(probe)),
      withdraw: () => end(() => {}),
    }
  }

  /** Trouble that showed after a call had been counted a success, such as a stream cut short. */
  trouble(): void {
    this.#failed(false)
  }

  #succeeded(probe: boolean): void {
    this.#row = 0
    this.#count(false)
    // A straggler from before the opening proves nothing about now.
    if (this.#openedAt === null || !probe) return
    this.#openedAt = null
    this.#calls.fill(0)
    this.#failures.fill(0)
    this.#onChange("closed")
  }

  #failed(probe: boolean): void {
    this.#row += 1
    this.#count(true)
    if (this.#openedAt !== null) {
      // A failed probe starts the pause again; a straggler from before the opening does not prolong it.
      if (probe) this.#openedAt = this.#now()
      return
    }
    if (this.#row < circuitRules.failuresInARow && !this.#windowIsBad()) return
    this.#openedAt = this.#now()
    this.#onChange("open")
  }

  #count(failed: boolean): void {
    const second = Math.floor(this.#now() / bucketMs)
    const slot = second % buckets
    if (this.#stamps[slot] !== second) {
      this.#stamps[slot] = second
      this.#calls[slot] = 0
      this.#failures[slot] = 0
    }
    this.#calls[slot]! += 1
    if (failed) this.#failures[slot]! += 1
  }

  #windowIsBad(): boolean {
    const oldest = Math.floor(this.#now() / bucketMs) - buckets
    let calls = 0
    let failures = 0
    for (let slot = 0; slot < buckets; slot++) {
      if (this.#stamps[slot]! <= oldest) continue
      calls += this.#calls[slot]!
      failures += this.#failures[slot]!
    }
    return calls >= circuitRules.windowLeast && failures >= calls * circuitRules.windowShare
  }
}
