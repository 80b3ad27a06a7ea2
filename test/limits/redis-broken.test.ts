import { afterEach, expect, test } from "bun:test"
import { launchRedis, type RedisServer } from "../support/redis.ts"
import { closeInstances, instance, instances, lasting, names, takeMany, until } from "./instances.ts"

const open: RedisServer[] = []
afterEach(async () => {
  await closeInstances()
  await Promise.all(open.splice(0).map((redis) => redis.stop()))
})

async function launch(password?: string): Promise<RedisServer> {
  const redis = await launchRedis(password === undefined ? {} : { password })
  open.push(redis)
  return redis
}

test("FLUSHALL: an instance tells Redis what it holds before it is given more", async () => {
  const changes: boolean[] = []
  const redis = await launch()
  // Renewals stay out of it: the next request alone has to notice.
  const rare = { leaseMs: 60_000, renewMs: 60_000, onDegraded: (away: boolean) => changes.push(away) }
  const one = instance(redis.url, rare)
  const two = instance(redis.url, rare)
  expect(await takeMany(one, "acme", 4, names("a", 3))).toBe(3)
  await redis.command("FLUSHALL")
  expect(await takeMany(one, "acme", 4, names("b", 3))).toBe(1)
  expect(await two.inFlight("acme")).toBe(4)
  expect(await two.take("acme", 4, "c")).toBe(false)
  expect(changes).toEqual([])
})

test("FLUSHALL: the next renewal brings back all that is held, and the instances", async () => {
  const redis = await launch()
  const [one, two] = await instances(redis.url, 2, lasting)
  await takeMany(one!, "acme", 4, names("a", 4))
  await takeMany(one!, "free", 0, names("f", 700))
  await redis.command("FLUSHALL")
  await until(async () => (await two!.inFlight("acme")) === 4 && (await two!.inFlight("free")) === 700)
  expect(await two!.take("acme", 4, "b")).toBe(false)
  await until(async () => (await redis.command("ZCARD", "tollgate:instances")) === 2)
})

test("one lost lease of several comes back with the next renewal", async () => {
  const redis = await launch()
  const [one, two] = await instances(redis.url, 2, lasting)
  await takeMany(one!, "acme", 3, names("a", 2))
  await two!.take("acme", 3, "b")
  await redis.command("ZREM", "tollgate:slots:acme", "a-0")
  await until(async () => (await redis.command("ZCARD", "tollgate:slots:acme")) === 3)
  expect(await two!.take("acme", 3, "c")).toBe(false)
})

test("SCRIPT FLUSH: requests go on without a change of state", async () => {
  const changes: boolean[] = []
  const redis = await launch()
  const [one, two] = await instances(redis.url, 2, { ...lasting, onDegraded: (away) => changes.push(away) })
  for (let round = 0; round < 20; round++) {
    await redis.command("SCRIPT", "FLUSH", "SYNC")
    expect(await takeMany(one!, "acme", 3, names(`a-${round}`, 4))).toBe(3)
    expect(await one!.take("free", 0, `free-${round}`)).toBe(true)
    one!.give("free", `free-${round}`)
    for (const lease of names(`a-${round}`, 4)) one!.give("acme", lease)
    await one!.inFlight("acme")
  }
  expect(await two!.inFlight("acme")).toBe(0)
  await until(async () => (await two!.inFlight("free")) === 0, 1000)
  expect(changes).toEqual([])
})

test("a Redis that has become a replica refuses writes: its instances go on alone until it is a master", async () => {
  const changes: [boolean, string][] = []
  const redis = await launch()
  const one = instance(redis.url, { ...lasting, onDegraded: (...change) => changes.push(change) })
  expect(await takeMany(one, "acme", 3, ["r1", "r2"])).toBe(2)
  await redis.command("REPLICAOF", "127.0.0.1", "1")
  expect(await takeMany(one, "acme", 3, names("a", 5))).toBe(1)
  expect(changes).toEqual([[true, expect.stringContaining("READONLY")]])
  await Bun.sleep(4 * lasting.retryMs)
  expect(changes.length).toBe(1)
  await redis.command("REPLICAOF", "NO", "ONE")
  await until(() => !one.away)
  expect(await one.inFlight("acme")).toBe(3)
  expect(await redis.command("ZCARD", "tollgate:slots:acme")).toBe(3)
})

test("a wrong password is a Redis that is away: no one is refused for it, and the right one ends it", async () => {
  const changes: boolean[] = []
  const redis = await launch("the-right-one")
  const url = redis.url.replace("the-right-one", "another")
  const one = instance(url, { ...lasting, onDegraded: (away) => changes.push(away) })
  expect(await takeMany(one, "acme", 4, names("a", 6))).toBe(4)
  await Bun.sleep(4 * lasting.retryMs)
  expect(changes).toEqual([true])
  one.give("acme", "a-0")
  expect(await one.take("acme", 4, "b")).toBe(true)
  await redis.command("CONFIG", "SET", "requirepass", "another")
  await until(() => !one.away)
  expect(await one.inFlight("acme")).toBe(4)
  expect(changes).toEqual([true, false])
})

test("a key of another type in the place of an account's slots refuses no one", async () => {
  const redis = await launch()
  const one = instance(redis.url, lasting)
  await redis.command("SET", "tollgate:slots:acme", "not ours")
  expect(await takeMany(one, "acme", 2, names("a", 3))).toBe(2)
  for (const lease of names("a", 3)) one.give("acme", lease)
  await redis.command("DEL", "tollgate:slots:acme")
  await until(() => !one.away)
  expect(await takeMany(one, "acme", 2, names("b", 3))).toBe(2)
})

test("connections that Redis cuts are replaced at once, and nothing that is held is lost", async () => {
  const changes: boolean[] = []
  const redis = await launch()
  const [one, two] = await instances(redis.url, 2, {
    ...lasting,
    retryMs: 1000,
    onDegraded: (away) => changes.push(away),
  })
  await takeMany(one!, "acme", 4, names("a", 3))
  await Bun.sleep(1000)
  await redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
  await until(() => changes.filter((away) => !away).length === 2, 900)
  expect(await two!.inFlight("acme")).toBe(3)
  // No data was lost, so whole limits are given out again from the start.
  expect(await takeMany(one!, "acme", 4, names("b", 2))).toBe(1)
})
