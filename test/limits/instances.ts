import { type RedisLimiter, type RedisLimiterOptions, redisLimiter } from "../../src/limits/redis.ts"

/**
 * Leases and pauses short enough to see them run out. The patience is long: where a test is not about it, a machine
 * that is busy with other things must not look like a Redis that does not answer.
 */
export const quick = { leaseMs: 1500, renewMs: 150, retryMs: 150, patienceMs: 3000 } as const

/** Leases as long as in service, so that nothing in a test is put right by their running out. */
export const lasting = { ...quick, leaseMs: 30_000 } as const

/** As long as in service. */
export const servicePatience = { patienceMs: 250 } as const

const open: RedisLimiter[] = []
let made = 0

/** One instance of the gateway, as far as limits go. */
export function instance(url: string, options: Partial<RedisLimiterOptions> = {}): RedisLimiter {
  const limiter = redisLimiter({ url, instanceId: `instance-${++made}`, patienceMs: quick.patienceMs, ...options })
  open.push(limiter)
  return limiter
}

/** Instances that know of each other. */
export async function instances(
  url: string,
  count: number,
  options: Partial<RedisLimiterOptions> = {},
): Promise<RedisLimiter[]> {
  const limiters = Array.from({ length: count }, () => instance(url, { ...quick, ...options }))
  await until(() => limiters.every((limiter) => limiter.instances === count))
  return limiters
}

export async function closeInstances(): Promise<void> {
  await Promise.all(open.splice(0).map((limiter) => limiter.close()))
}

/** How many of these were taken, all asked for at once. */
export async function takeMany(
  limiter: RedisLimiter,
  account: string,
  limit: number,
  leases: readonly string[],
): Promise<number> {
  const taken = await Promise.all(leases.map((lease) => limiter.take(account, limit, lease)))
  return taken.filter(Boolean).length
}

export function names(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `${prefix}-${at}`)
}

/** Waits for something that has no event of its own; fails if it never comes. */
export async function until(condition: () => boolean | Promise<boolean>, patienceMs = 10_000): Promise<void> {
  const deadline = performance.now() + patienceMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`still not so after ${patienceMs} ms: ${condition}`)
    await Bun.sleep(5)
  }
}
