import { createHash } from "node:crypto"

/** A Lua script that Redis runs as one step. Each works on one key only, so that any sharding of keys suits it. */
export interface Script {
  readonly text: string
  readonly sha: string
}

/** Redis' own clock decides what has run out: instances whose clocks differ cannot end each other's leases. */
const clock = `
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`

function script(body: string): Script {
  const text = clock + body
  return { text, sha: createHash("sha1").update(text).digest("hex") }
}

/**
 * Takes a slot: 1 taken, 0 refused, -1 Redis knows of fewer leases than the asking instance alone holds, so it has lost
 * some. ARGV: lease, limit (0: none), length of a lease in ms, leases the asking instance holds.
 */
export const takeSlot = script(`
local key, lease, limit, length = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call("ZREMRANGEBYSCORE", key, "-inf", now)
local count = redis.call("ZCARD", key)
if count < tonumber(ARGV[4]) then return -1 end
if limit > 0 and count >= limit then return 0 end
redis.call("ZADD", key, now + length, lease)
redis.call("PEXPIRE", key, length)
return 1
`)

/** Records or renews leases that are held in any case. ARGV: length of a lease in ms, leases. */
export const holdSlots = script(`
local key, length = KEYS[1], tonumber(ARGV[1])
for i = 2, #ARGV do redis.call("ZADD", key, now + length, ARGV[i]) end
redis.call("PEXPIRE", key, length)
return #ARGV - 1
`)

export const countSlots = script(`
return redis.call("ZCOUNT", KEYS[1], "(" .. now, "+inf")
`)

/** Tells that an instance lives: how many do, and whether it was known before. ARGV: instance, lifetime in ms. */
export const beatHeart = script(`
local key, length = KEYS[1], tonumber(ARGV[2])
redis.call("ZREMRANGEBYSCORE", key, "-inf", now)
local known = redis.call("ZSCORE", key, ARGV[1]) and 1 or 0
redis.call("ZADD", key, now + length, ARGV[1])
redis.call("PEXPIRE", key, length)
return { redis.call("ZCARD", key), known }
`)

export const allScripts: readonly Script[] = [takeSlot, holdSlots, countSlots, beatHeart]
