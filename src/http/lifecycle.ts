/** Whether the instance takes requests, and how many are in flight. */
export interface Lifecycle {
  readonly draining: boolean
  readonly inFlight: number
  /** Counts a request in; the function counts it out, once. */
  enter(): () => void
  /** Notes a request that was turned away. */
  turnedAway(): void
  /** Turns new requests away from now on; resolves when none is in flight and callers have stopped coming. */
  drain(): Promise<void>
}

/** Callers hold connections open: the instance stays until none of them has asked for this long. */
const quietMs = 300
/** But not longer than this once nothing is in flight, because a client that never stops asking must not keep it alive. */
const mostLingerMs = 3000

export function lifecycle(): Lifecycle {
  let draining = false
  let inFlight = 0
  let lastAsked = 0
  const whenEmpty: (() => void)[] = []
  return {
    get draining() {
      return draining
    },
    get inFlight() {
      return inFlight
    },
    enter() {
      inFlight += 1
      let left = false
      return () => {
        if (left) return
        left = true
        inFlight -= 1
        if (inFlight === 0) for (const tell of whenEmpty.splice(0)) tell()
      }
    },
    turnedAway() {
      lastAsked = performance.now()
    },
    async drain() {
      draining = true
      lastAsked = performance.now()
      if (inFlight > 0) await new Promise<void>((resolve) => whenEmpty.push(resolve))
      const emptyAt = performance.now()
      while (performance.now() - lastAsked < quietMs && performance.now() - emptyAt < mostLingerMs) await Bun.sleep(20)
    },
  }
}
