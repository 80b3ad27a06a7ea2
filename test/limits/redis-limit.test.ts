import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test"
import type { RedisLimiter } from "../../src/limits/redis.ts"
import { launchRedis, type RedisServer } from "../support/redis.ts"
import { closeInstances, instance, instances, names, takeMany, until } from "./instances.ts"

let redis: RedisServer
beforeAll(async () => {
  redis = await launchRedis()
})
beforeEach(() => redis.command("FLUSHALL"))
afterEach(closeInstances)
afterAll(() => redis.stop())

const allGone = async (limiters: readonly RedisLimiter[], account: string): Promise<boolean> => {
  const counts = await Promise.all(limiters.map((limiter) => limiter.inFlight(account)))
  return counts.every((count) => count === 0)
}

test("limit N, N+1 at once over three instances: exactly one is refused, every round", async () => {
  const three = await instances(redis.url, 3)
  for (let round = 0; round < 300; round++) {
    const limit = 1 + (round % 7)
    const asked = names(`round-${round}`, limit + 1).map((lease, at) => ({ lease, limiter: three[(at + round) % 3]! }))
    const taken = await Promise.all(asked.map(({ lease, limiter }) => limiter.take("acme", limit, lease)))
    expect(taken.filter((yes) => !yes).length).toBe(1)
    expect(await three[round % 3]!.inFlight("acme")).toBe(limit)
    for (const { lease, limiter } of asked) limiter.give("acme", lease)
    await until(() => allGone(three, "acme"))
  }
})

test("limit N, N+1 at once on one of several instances: exactly one is refused, every round", async () => {
  const [one] = await instances(redis.url, 2)
  for (let round = 0; round < 200; round++) {
    const leases = names(`round-${round}`, 5)
    expect(await takeMany(one!, "acme", 4, leases)).toBe(4)
    for (const lease of leases) one!.give("acme", lease)
  }
  expect(await one!.inFlight("acme")).toBe(0)
})

test("a crowd that comes and goes never holds more than the limit, and uses all of it", async () => {
  const limit = 5
  const three = await instances(redis.url, 3)
  let holding = 0
  let most = 0
  let refused = 0
  const visitor = async (name: number): Promise<void> => {
    const limiter = three[name % 3]!
    for (let visit = 0; visit < 60; visit++) {
      const lease = `visitor-${name}-${visit}`
      if (!(await limiter.take("acme", limit, lease))) {
        refused++
        await Bun.sleep(1)
        continue
      }
      most = Math.max(most, ++holding)
      await Bun.sleep((name * 7 + visit) % 4)
      holding--
      limiter.give("acme", lease)
    }
  }
  await Promise.all(Array.from({ length: 24 }, (_, name) => visitor(name)))
  expect(most).toBe(limit)
  expect(refused).toBeGreaterThan(0)
  await until(() => allGone(three, "acme"))
})

test("a limit that is changed meanwhile counts what is held, and held slots are still given back", async () => {
  const [one, two] = await instances(redis.url, 2)
  expect(await takeMany(one!, "acme", 4, names("a", 3))).toBe(3)
  expect(await two!.take("acme", 2, "lowered")).toBe(false)
  expect(await two!.take("acme", 4, "raised")).toBe(true)
  expect(await one!.take("acme", 4, "full")).toBe(false)
  one!.give("acme", "a-0")
  one!.give("acme", "a-1")
  expect(await one!.inFlight("acme")).toBe(2)
  expect(await two!.take("acme", 2, "still-full")).toBe(false)
  one!.give("acme", "a-2")
  expect(await one!.inFlight("acme")).toBe(1)
  expect(await two!.take("acme", 2, "fits")).toBe(true)
})

test("unlimited requests are counted: a limit set later finds them", async () => {
  const [one, two] = await instances(redis.url, 2)
  expect(await takeMany(one!, "acme", 0, names("free", 1200))).toBe(1200)
  expect(await one!.inFlight("acme")).toBe(1200)
  expect(await two!.inFlight("acme")).toBe(1200)
  expect(await two!.take("acme", 1200, "late")).toBe(false)
  one!.give("acme", "free-7")
  expect(await one!.inFlight("acme")).toBe(1199)
  expect(await two!.take("acme", 1200, "late")).toBe(true)
})

test("a slot given back twice, never taken, or refused frees nothing of others", async () => {
  const [one, two] = await instances(redis.url, 2)
  expect(await takeMany(one!, "acme", 2, ["r1", "r2"])).toBe(2)
  expect(await two!.take("acme", 2, "r3")).toBe(false)
  two!.give("acme", "r3")
  two!.give("acme", "unheard-of")
  two!.give("nobody", "r1")
  one!.give("acme", "r1")
  one!.give("acme", "r1")
  expect(await two!.inFlight("nobody")).toBe(0)
  expect(await one!.inFlight("acme")).toBe(1)
})

test("accounts do not share slots, not even under one lease", async () => {
  const one = instance(redis.url)
  expect(await one.take("a", 1, "r1")).toBe(true)
  expect(await one.take("b", 1, "r1")).toBe(true)
  one.give("b", "r1")
  expect(await one.inFlight("a")).toBe(1)
  expect(await one.inFlight("b")).toBe(0)
})

test("an instance that starts later finds what others hold, and is given whole limits from the start", async () => {
  const first = instance(redis.url)
  expect(await takeMany(first, "acme", 9, names("a", 2))).toBe(2)
  const second = instance(redis.url)
  expect(await takeMany(second, "acme", 9, names("b", 9))).toBe(7)
  expect(second.instances).toBe(2)
})

test("an account that holds nothing leaves nothing behind in Redis", async () => {
  const one = instance(redis.url)
  await takeMany(one, "acme", 3, names("a", 3))
  for (const lease of names("a", 3)) one.give("acme", lease)
  expect(await one.inFlight("acme")).toBe(0)
  expect(await redis.command("KEYS", "*")).toEqual(["tollgate:instances"])
})
