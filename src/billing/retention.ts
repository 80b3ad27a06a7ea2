import type { Events } from "../core/events.ts"
import type { Store } from "../store/db.ts"
import { deleteRequestsBefore } from "../store/requests.ts"

/** How often old requests are looked for, and how many go in one transaction, with a pause before the next. */
const lookEveryMs = 60_000
const batch = 500
const pauseMs = 50

/** Deletes requests that are older than they are kept, a few at a time, so that nobody waits for it. */
export function sweepRequests(
  store: Store,
  keepMs: () => number | null,
  events: Events,
  everyMs = lookEveryMs,
): { stop(): Promise<void> } {
  let stopped = false
  let sweeping: Promise<void> | null = null
  let timer = setTimeout(tick, everyMs)
  timer.unref()

  async function sweep(): Promise<void> {
    const keep = keepMs()
    if (keep === null) return
    const before = Date.now() - keep
    while (!stopped && (await deleteRequestsBefore(store, before, batch)) === batch) await Bun.sleep(pauseMs)
  }

  function tick(): void {
    sweeping = sweep()
      .catch((error: unknown) => events.databaseAway(error))
      .finally(() => {
        sweeping = null
        if (stopped) return
        timer = setTimeout(tick, everyMs)
        timer.unref()
      })
  }

  return {
    async stop() {
      stopped = true
      clearTimeout(timer)
      await sweeping
    },
  }
}
