export interface WindowHit {
  /** Limit minus count; negative once the limit is passed. */
  readonly remaining: number
  readonly allowed: boolean
  /** Milliseconds until the key's window is over. */
  readonly resetMs: number
}

export interface FixedWindow {
  /** Counts one hit of the key, the refused ones too, and tells how it stands. */
  hit(key: string): WindowHit
  /** Windows in memory; over ones are among them for a while. */
  readonly size: number
}

interface Window {
  readonly start: number
  count: number
}

/**
 * At most `limit` hits per key in a window of `windowMs`. A key's window begins with its first hit and stands still; the
 * first hit after its end begins the next one. `now` is in milliseconds; set back, it holds no window open for more than
 * twice its length.
 */
export function fixedWindow(limit: number, windowMs: number, now: () => number): FixedWindow {
  // Two generations, each a window long at least: when they move on, all of the older one is over and is let go at
  // once. No key needs a timer, no hit needs a search.
  let current = new Map<string, Window>()
  let previous = new Map<string, Window>()
  let turnedAt = Number.NEGATIVE_INFINITY

  const turn = (time: number): void => {
    const age = time - turnedAt
    if (age >= 0 && age < windowMs) return
    // Nobody came for a whole window, so that the younger generation is over as well.
    const allOver = age < 0 || age >= 2 * windowMs
    previous = allOver ? new Map() : current
    current = new Map()
    turnedAt = time
  }

  return {
    hit(key) {
      const time = now()
      turn(time)
      let window = current.get(key) ?? previous.get(key)
      if (window === undefined || time - window.start >= windowMs) {
        window = { start: time, count: 0 }
        current.set(key, window)
      }
      window.count++
      const remaining = limit - window.count
      return { remaining, allowed: remaining >= 0, resetMs: window.start + windowMs - time }
    },
    get size() {
      return current.size + previous.size
    },
  }
}
