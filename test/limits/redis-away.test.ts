import { afterEach, beforeEach, expect, test } from "bun:test"
import { launchRedis, type RedisServer } from "../support/redis.ts"
import { openWay } from "./blocked-way.ts"
import { closeInstances, instance, instances, lasting, names, servicePatience, takeMany, until } from "./instances.ts"

let redis: RedisServer
beforeEach(async () => {
  redis = await launchRedis()
})
afterEach(async () => {
  await closeInstances()
  await redis.stop()
})

const serving = { ...lasting, ...servicePatience } as const

const timed = async <T>(work: () => Promise<T>): Promise<{ value: T; ms: number }> => {
  const began = performance.now()
  const value = await work()
  return { value, ms: performance.now() - began }
}

test("Redis stops: each instance keeps to its share of the limit, at least one, and unlimited goes on", async () => {
  const three = await instances(redis.url, 3, lasting)
  await redis.kill()
  for (const [at, limiter] of three.entries()) {
    expect(await takeMany(limiter, "ten", 10, names(`ten-${at}`, 10))).toBe(3)
    expect(await takeMany(limiter, "two", 2, names(`two-${at}`, 5))).toBe(1)
    expect(await takeMany(limiter, "free", 0, names(`free-${at}`, 50))).toBe(50)
    expect(await limiter.inFlight("ten")).toBe(3)
    limiter.give("ten", `ten-${at}-0`)
    limiter.give("ten", `ten-${at}-0`)
    expect(await takeMany(limiter, "ten", 10, names(`again-${at}`, 10))).toBe(1)
    expect(limiter.away).toBe(true)
  }
})

test("what was taken before Redis stopped counts in an instance's share", async () => {
  const [one, two] = await instances(redis.url, 2, lasting)
  expect(await takeMany(one!, "acme", 6, names("before", 5))).toBe(5)
  await redis.kill()
  expect(await one!.take("acme", 6, "more")).toBe(false)
  expect(await takeMany(two!, "acme", 6, names("two", 5))).toBe(3)
  for (const lease of names("before", 3)) one!.give("acme", lease)
  expect(await takeMany(one!, "acme", 6, names("after", 5))).toBe(1)
})

test("Redis comes back empty: what is held is told to it, from before and from meanwhile, and limits are right", async () => {
  const [one, two] = await instances(redis.url, 2, lasting)
  expect(await takeMany(one!, "acme", 6, names("before", 2))).toBe(2)
  await redis.kill()
  await until(() => one!.away && two!.away)
  expect(await takeMany(one!, "acme", 6, names("one", 5))).toBe(1)
  expect(await takeMany(two!, "acme", 6, names("two", 5))).toBe(3)
  await redis.start()
  await until(() => !one!.away && !two!.away)
  expect(await one!.inFlight("acme")).toBe(6)
  expect(await two!.inFlight("acme")).toBe(6)
  expect(await one!.take("acme", 6, "more")).toBe(false)
  expect(await two!.take("acme", 6, "more")).toBe(false)
  one!.give("acme", "before-0")
  expect(await one!.inFlight("acme")).toBe(5)
  await until(() => two!.take("acme", 6, "more"))
  expect(await one!.take("acme", 6, "and-more")).toBe(false)
})

test("after Redis came back empty, whole limits are given out only when the others have had time to come back", async () => {
  let now = 1_000_000
  const one = instance(redis.url, { ...lasting, now: () => now })
  const silent = instance(redis.url, { ...lasting, retryMs: 60_000 })
  await until(() => one.instances === 2 && silent.instances === 2)
  await redis.kill()
  await until(() => one.away && silent.away)
  expect(await takeMany(silent, "acme", 4, names("silent", 4))).toBe(2)
  await redis.start()
  await until(() => !one.away)
  expect(await takeMany(one, "acme", 4, names("one", 4))).toBe(2)
  now += 2 * lasting.retryMs
  expect(await takeMany(one, "acme", 4, names("later", 4))).toBe(2)
})

test("Redis stops and starts under load: requests go on, nothing is thrown, and nothing is left over", async () => {
  const changes: boolean[] = []
  const three = await instances(redis.url, 3, { ...lasting, onDegraded: (away) => changes.push(away) })
  const limit = 6
  let over = false
  let holding = 0
  let most = 0
  const served = { before: 0, away: 0, after: 0 }
  let phase: keyof typeof served = "before"
  const visitor = async (name: number): Promise<void> => {
    const limiter = three[name % 3]!
    for (let visit = 0; !over; visit++) {
      const lease = `visitor-${name}-${visit}`
      if (await limiter.take("acme", limit, lease)) {
        served[phase]++
        most = Math.max(most, ++holding)
        await Bun.sleep(visit % 3)
        holding--
        limiter.give("acme", lease)
      } else await Bun.sleep(2)
    }
  }
  const visitors = Promise.all(Array.from({ length: 18 }, (_, name) => visitor(name)))
  await until(() => served.before > 100)
  expect(most).toBe(limit)
  await redis.kill()
  await until(() => three.every(({ away }) => away))
  phase = "away"
  await until(() => served.away > 100)
  await redis.start()
  await until(() => three.every(({ away }) => !away))
  await Bun.sleep(2 * lasting.retryMs)
  phase = "after"
  // Slots from the change itself are given back by now.
  most = 0
  await until(() => served.after > 300)
  expect(most).toBe(limit)
  over = true
  await visitors
  for (const limiter of three) await until(async () => (await limiter.inFlight("acme")) === 0)
  expect(changes.toSorted()).toEqual([false, false, false, true, true, true])
})

test("slots that are taken while Redis is coming back are all told to it", async () => {
  const rare = { ...lasting, renewMs: 60_000 }
  const one = instance(redis.url, rare)
  let taken = 0
  const takeOne = () => one.take(`acme-${taken % 100}`, 0, `lease-${taken++}`)
  // So many that telling them takes a while.
  while (taken < 20_000) await takeOne()
  await redis.kill()
  await until(() => one.away)
  const back = redis.start()
  while (one.away) {
    await takeOne()
    await Bun.sleep(1)
  }
  await back
  const two = instance(redis.url, rare)
  let known = 0
  await until(async () => {
    known = 0
    for (let at = 0; at < 100; at++) known += await two.inFlight(`acme-${at}`)
    return known >= taken
  }, 2000)
  expect(known).toBe(taken)
})

test("Redis is not there at the start: limits hold in this instance alone, until it comes", async () => {
  const changes: [boolean, string][] = []
  await redis.kill()
  const one = instance(redis.url, { ...lasting, onDegraded: (...change) => changes.push(change) })
  expect(await takeMany(one, "acme", 3, names("a", 5))).toBe(3)
  expect(one.away).toBe(true)
  await redis.start()
  await until(() => !one.away)
  expect(changes).toEqual([
    [true, expect.stringMatching(/./)],
    [false, expect.stringMatching(/./)],
  ])
  const two = instance(redis.url, lasting)
  expect(await two.inFlight("acme")).toBe(3)
  expect(await two.take("acme", 3, "b")).toBe(false)
})

test("Redis hangs: those who wait at that moment go on after the patience of one call, everyone else at once", async () => {
  const one = instance(redis.url, serving)
  expect(await one.take("acme", 0, "before")).toBe(true)
  await one.inFlight("acme")
  redis.freeze()
  const first = await timed(() => takeMany(one, "acme", 50, names("first", 100)))
  expect(first.value).toBe(49)
  expect(first.ms).toBeLessThan(600)
  // A hundred calls that each waited would take far longer, even if the background attempts cost something.
  const second = await timed(async () => {
    for (const lease of names("second", 100)) expect(await one.take("other", 0, lease)).toBe(true)
    expect(await one.take("acme", 50, "full")).toBe(false)
    for (const lease of names("second", 100)) one.give("other", lease)
    return one.inFlight("other")
  })
  expect(second.value).toBe(0)
  expect(second.ms).toBeLessThan(250)
  await Bun.sleep(3 * serving.retryMs)
  expect((await timed(() => one.take("other", 5, "third"))).ms).toBeLessThan(200)
  redis.thaw()
  await until(() => !one.away)
  expect(await one.inFlight("acme")).toBe(50)
  expect(await one.inFlight("other")).toBe(1)
})

test("Redis hangs at the start: the first requests wait once, and are served", async () => {
  redis.freeze()
  const one = instance(redis.url, serving)
  const first = await timed(() => takeMany(one, "acme", 2, names("a", 3)))
  expect(first.value).toBe(2)
  expect(first.ms).toBeLessThan(600)
  expect((await timed(() => one.take("other", 2, "b"))).ms).toBeLessThan(200)
})

test("slots that are given back while Redis hangs are free as soon as it is back", async () => {
  const [one, two] = await instances(redis.url, 2, serving)
  expect(await takeMany(one!, "acme", 2, ["r1", "r2"])).toBe(2)
  redis.freeze()
  one!.give("acme", "r1")
  await until(() => one!.away)
  one!.give("acme", "r2")
  redis.thaw()
  await until(() => !one!.away && !two!.away)
  await until(() => takeMany(two!, "acme", 2, ["r3", "r4"]).then((taken) => taken === 2), 2000)
})

test("slots whose return never got through are free as soon as the way to Redis is open again", async () => {
  const way = await openWay(redis.port)
  try {
    // No renewal comes to help, and no lease runs out.
    const rare = { ...serving, renewMs: 60_000, leaseMs: 60_000 }
    const one = instance(way.url, rare)
    const two = instance(redis.url, rare)
    expect(await takeMany(one, "acme", 3, ["r1", "r2", "r3"])).toBe(3)
    way.block()
    one.give("acme", "r1")
    await until(() => one.away)
    one.give("acme", "r2")
    expect(await two.take("acme", 3, "r4")).toBe(false)
    way.clear()
    await until(() => !one.away)
    await until(async () => (await two.inFlight("acme")) === 1, 2000)
    expect(await takeMany(two, "acme", 3, ["r4", "r5", "r6"])).toBe(2)
  } finally {
    way.close()
  }
})

test("a request that was refused while Redis hung holds nothing when Redis gets to it after all", async () => {
  const [one, two] = await instances(redis.url, 2, serving)
  expect(await takeMany(one!, "acme", 4, ["r1", "r2"])).toBe(2)
  redis.freeze()
  expect(await one!.take("acme", 4, "late")).toBe(false)
  redis.thaw()
  await until(() => !one!.away && !two!.away)
  await until(async () => (await two!.inFlight("acme")) === 2)
  await Bun.sleep(2 * serving.renewMs)
  expect(await two!.inFlight("acme")).toBe(2)
  // Asked for once more under the same name, it is a slot like any other.
  await until(() => two!.take("acme", 4, "r3"))
  one!.give("acme", "r1")
  await until(() => one!.take("acme", 4, "late"))
  await Bun.sleep(2 * serving.renewMs)
  expect(await redis.command("ZCARD", "tollgate:slots:acme")).toBe(3)
})

test("a stall of this process is not blamed on Redis", async () => {
  const changes: boolean[] = []
  const one = instance(redis.url, { ...lasting, patienceMs: 1000, onDegraded: (away) => changes.push(away) })
  await one.take("acme", 5, "first")
  const asked = one.take("acme", 5, "second")
  // The question is on its way to the socket, but not in it: that comes when this turn of the loop is over.
  for (let step = 0; step < 10; step++) await Promise.resolve()
  const end = performance.now() + 1200
  while (performance.now() < end);
  expect(await asked).toBe(true)
  expect(changes).toEqual([])
})
