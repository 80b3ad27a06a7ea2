/**
 * An instance in a process of its own that works and ends: takes and gives 10,000 slots in turn, says what it has left
 * behind, closes, and must then end by itself. Argument: Redis' address.
 */
import { heapStats } from "bun:jsc"
import { redisLimiter } from "../../src/limits/redis.ts"

const rounds = 100
const perRound = 100

const limiter = redisLimiter({ url: process.argv[2] ?? "", instanceId: "worker" })

async function work(name: string): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const leases = Array.from({ length: perRound }, (_, at) => `${name}-${round}-${at}`)
    await Promise.all(leases.map((lease, at) => limiter.take(`account-${at % 10}`, at % 2 === 0 ? 50 : 0, lease)))
    for (const [at, lease] of leases.entries()) limiter.give(`account-${at % 10}`, lease)
  }
  await limiter.inFlight("account-0")
}

function count(): { readonly objects: number; readonly timers: number } {
  Bun.gc(true)
  const { objectCount, objectTypeCounts } = heapStats()
  return { objects: objectCount, timers: objectTypeCounts.Timeout ?? 0 }
}

// What is made once, such as compiled code, is made by the first turn.
await work("first")
const before = count()
await work("second")
const after = count()
console.log(JSON.stringify({ grown: after.objects - before.objects, timers: after.timers }))
await limiter.close()
