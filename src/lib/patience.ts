/** How exact the waiting is: nobody needs a minute to the millisecond. */
const tickMs = 1000

export interface Watch {
  readonly until: number
  readonly giveUp: () => void
}

/** Many waits of one length on a single timer: a request that needs none of its wait costs no timer. */
export class Patience {
  readonly #ms: number
  readonly #watches = new Set<Watch>()
  #timer: Timer | null = null

  constructor(ms: number) {
    this.#ms = ms
  }

  watch(giveUp: () => void): Watch {
    const watch = { until: performance.now() + this.#ms, giveUp }
    this.#watches.add(watch)
    if (this.#timer === null) {
      this.#timer = setInterval(() => this.#look(), Math.min(tickMs, this.#ms))
      this.#timer.unref()
    }
    return watch
  }

  forget(watch: Watch): void {
    this.#watches.delete(watch)
  }

  #look(): void {
    const now = performance.now()
    // They stand in the order they were made and all wait equally long, so the first that may go on ends the look.
    for (const watch of this.#watches) {
      if (watch.until > now) return
      this.#watches.delete(watch)
      watch.giveUp()
    }
    if (this.#watches.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer)
      this.#timer = null
    }
  }
}
