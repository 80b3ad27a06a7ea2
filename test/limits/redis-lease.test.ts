import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test"
import { join } from "node:path"
import { launchRedis, type RedisServer } from "../support/redis.ts"
import { closeInstances, instance, instances, names, quick, takeMany, until } from "./instances.ts"

let redis: RedisServer
beforeAll(async () => {
  redis = await launchRedis()
})
beforeEach(() => redis.command("FLUSHALL"))
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL")
  await closeInstances()
})
afterAll(() => redis.stop())

const children: Bun.Subprocess[] = []

function program(file: string, ...args: readonly (string | number)[]): Bun.Subprocess<"ignore", "pipe", "inherit"> {
  const command = [process.execPath, join(import.meta.dir, file), ...args.map(String)]
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" })
  children.push(child)
  return child
}

async function firstLine(child: { readonly stdout: ReadableStream<Uint8Array> }): Promise<string> {
  const { value } = await child.stdout.getReader().read()
  return new TextDecoder().decode(value).trim()
}

test("slots of an instance that is killed are free when their leases have run out, not before", async () => {
  const leaseMs = 1500
  const holder = program("holder.ts", redis.url, "acme", 3, 2, leaseMs, 200)
  expect(await firstLine(holder)).toBe("taken 2")
  const survivor = instance(redis.url, { leaseMs, renewMs: 200 })
  expect(await takeMany(survivor, "acme", 3, ["s-1", "s-2"])).toBe(1)

  // Longer than a lease: as long as it lives, its slots are its own.
  await Bun.sleep(leaseMs + 500)
  expect(await survivor.take("acme", 3, "s-3")).toBe(false)
  holder.kill("SIGKILL")
  await holder.exited
  const diedAt = performance.now()
  expect(await survivor.take("acme", 3, "s-3")).toBe(false)
  await until(async () => await survivor.take("acme", 3, "s-3"))
  // The last renewal was about one pause before its death at the most.
  expect(performance.now() - diedAt).toBeGreaterThan(leaseMs / 2)
  await until(async () => (await survivor.inFlight("acme")) === 2)
  await until(() => survivor.instances === 1)
})

test("slots that are held for longer than a lease stay taken, in each of several accounts", async () => {
  const [one, two] = await instances(redis.url, 2)
  const accounts = names("account", 150)
  for (const account of accounts) expect(await takeMany(one!, account, 2, [`${account}-x`, `${account}-y`])).toBe(2)
  await takeMany(one!, "crowded", 0, names("crowd", 1300))
  const end = performance.now() + 2 * quick.leaseMs
  while (performance.now() < end) {
    for (const account of accounts) expect(await two!.take(account, 2, "more")).toBe(false)
    expect(await two!.inFlight("crowded")).toBe(1300)
    await Bun.sleep(50)
  }
  one!.give("account-3", "account-3-x")
  expect(await one!.inFlight("account-3")).toBe(1)
  expect(await two!.take("account-3", 2, "more")).toBe(true)
})

test("a slot that was given back is not renewed", async () => {
  const [one, two] = await instances(redis.url, 2)
  await takeMany(one!, "acme", 5, names("a", 5))
  for (const lease of names("a", 4)) one!.give("acme", lease)
  await Bun.sleep(3 * quick.renewMs)
  expect(await two!.inFlight("acme")).toBe(1)
})

test("what stands in Redis runs out there by itself", async () => {
  const one = instance(redis.url, { leaseMs: 5000 })
  await one.take("acme", 2, "r1")
  await one.take("free", 0, "r2")
  await one.inFlight("free")
  for (const key of ["tollgate:slots:acme", "tollgate:slots:free", "tollgate:instances"]) {
    const rest = Number(await redis.command("PTTL", key))
    expect(rest).toBeGreaterThan(0)
    expect(rest).toBeLessThanOrEqual(5000)
  }
})

test("an instance that closes gives back all it holds and is no longer counted", async () => {
  const [one, two] = await instances(redis.url, 2, { leaseMs: 60_000 })
  await takeMany(one!, "acme", 3, names("a", 3))
  await one!.close()
  expect(await takeMany(two!, "acme", 3, names("b", 4))).toBe(3)
  await until(() => two!.instances === 1)
})

test("ten thousand slots taken and given leave no timer, no memory and no key, and the process ends", async () => {
  const worker = program("worker.ts", redis.url)
  const left: unknown = JSON.parse(await worker.stdout.text())
  expect(await worker.exited).toBe(0)
  expect(left).toEqual({ grown: expect.any(Number), timers: expect.any(Number) })
  const { grown, timers } = left as { grown: number; timers: number }
  // One renews all leases, a few more may await the collector; forgotten ones would be thousands.
  expect(timers).toBeLessThan(20)
  expect(grown).toBeLessThan(2000)
  expect(await redis.command("KEYS", "*")).toEqual([])
})
