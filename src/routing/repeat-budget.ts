/** Repeats on the same route stay under a fifth of the requests, above a floor that lets a quiet instance repeat too. */
export const repeatRules = { windowMs: 10_000, share: 0.2, floor: 10 } as const

export interface RepeatBudget {
  requestCame(): void
  mayRepeat(): boolean
  repeated(): void
}

/** Counts in two half windows, so that the limit slides without remembering single requests. */
export function repeatBudget(now: () => number): RepeatBudget {
  const half = repeatRules.windowMs / 2
  let period = -1
  let current = { requests: 0, repeats: 0 }
  let previous = { requests: 0, repeats: 0 }
  const roll = () => {
    const at = Math.floor(now() / half)
    if (at === period) return
    previous = at === period + 1 ? current : { requests: 0, repeats: 0 }
    current = { requests: 0, repeats: 0 }
    period = at
  }
  return {
    requestCame() {
      roll()
      current.requests += 1
    },
    mayRepeat() {
      roll()
      const requests = current.requests + previous.requests
      const repeats = current.repeats + previous.repeats
      return repeats < repeatRules.floor + requests * repeatRules.share
    },
    repeated() {
      roll()
      current.repeats += 1
    },
  }
}
