import { expect, test } from "bun:test"
import { memoryLimiter } from "./memory.ts"

test("an account holds slots up to its limit, and a given one is free again", async () => {
  const limiter = memoryLimiter()
  expect(await limiter.take("a", 2, "r1")).toBe(true)
  expect(await limiter.take("a", 2, "r2")).toBe(true)
  expect(await limiter.take("a", 2, "r3")).toBe(false)
  expect(limiter.inFlight("a")).toBe(2)
  limiter.give("a", "r1")
  expect(limiter.inFlight("a")).toBe(1)
  expect(await limiter.take("a", 2, "r3")).toBe(true)
})

test("a refused request holds nothing, and giving it back frees nothing", async () => {
  const limiter = memoryLimiter()
  await limiter.take("a", 1, "r1")
  await limiter.take("a", 1, "r2")
  limiter.give("a", "r2")
  expect(limiter.inFlight("a")).toBe(1)
  expect(await limiter.take("a", 1, "r3")).toBe(false)
})

test("a slot given back twice is given back once", async () => {
  const limiter = memoryLimiter()
  await limiter.take("a", 2, "r1")
  await limiter.take("a", 2, "r2")
  limiter.give("a", "r1")
  limiter.give("a", "r1")
  expect(limiter.inFlight("a")).toBe(1)
})

test("limit 0 is unlimited, and still counted", async () => {
  const limiter = memoryLimiter()
  for (let i = 0; i < 1000; i++) expect(await limiter.take("a", 0, `r${i}`)).toBe(true)
  expect(limiter.inFlight("a")).toBe(1000)
})

test("a limit that is lowered meanwhile refuses new ones only", async () => {
  const limiter = memoryLimiter()
  for (const lease of ["r1", "r2", "r3"]) await limiter.take("a", 5, lease)
  expect(await limiter.take("a", 2, "r4")).toBe(false)
  limiter.give("a", "r1")
  expect(await limiter.take("a", 2, "r4")).toBe(false)
  limiter.give("a", "r2")
  expect(await limiter.take("a", 2, "r4")).toBe(true)
})

test("accounts do not share slots", async () => {
  const limiter = memoryLimiter()
  await limiter.take("a", 1, "r1")
  expect(await limiter.take("b", 1, "r1")).toBe(true)
  limiter.give("b", "r1")
  expect(limiter.inFlight("a")).toBe(1)
  expect(limiter.inFlight("b")).toBe(0)
})

test("giving back for an account that holds nothing does nothing", async () => {
  const limiter = memoryLimiter()
  limiter.give("nobody", "r1")
  expect(limiter.inFlight("nobody")).toBe(0)
})
