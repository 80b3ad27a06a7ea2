/**
 * An instance in a process of its own: takes slots, says so, and holds them until it is killed.
 * Arguments: Redis' address, account, limit, number of slots, length of a lease in ms, ms between renewals.
 */
import { redisLimiter } from "../../src/limits/redis.ts"
import { names, takeMany } from "./instances.ts"

const [url = "", account = "", limit = "", slots = "", leaseMs = "", renewMs = ""] = process.argv.slice(2)
const limiter = redisLimiter({
  url,
  instanceId: `holder-${process.pid}`,
  leaseMs: Number(leaseMs),
  renewMs: Number(renewMs),
})
const taken = await takeMany(limiter, account, Number(limit), names(`holder-${process.pid}`, Number(slots)))
console.log(`taken ${taken}`)
