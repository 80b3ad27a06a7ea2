import { expect, test } from "bun:test"
import { type FixedWindow, fixedWindow } from "./window.ts"

const limit = 240
const windowMs = 60_000

function atTime(start = 1_000): { window: FixedWindow; clock: { now: number } } {
  const clock = { now: start }
  return { window: fixedWindow(limit, windowMs, () => clock.now), clock }
}

test("remaining counts down to zero; the hit after that is refused with a negative rest", () => {
  const { window } = atTime()
  for (let rest = limit - 1; rest >= 0; rest--) {
    expect(window.hit("acme")).toEqual({ remaining: rest, allowed: true, resetMs: windowMs })
  }
  expect(window.hit("acme")).toEqual({ remaining: -1, allowed: false, resetMs: windowMs })
  expect(window.hit("acme")).toEqual({ remaining: -2, allowed: false, resetMs: windowMs })
})

test("a window begins with the key's first hit, ends a fixed time later and leaves nothing to the next", () => {
  const { window, clock } = atTime()
  for (let count = 0; count <= limit; count++) window.hit("acme")
  clock.now += windowMs - 1
  expect(window.hit("acme")).toEqual({ remaining: -2, allowed: false, resetMs: 1 })
  clock.now += 1
  expect(window.hit("acme")).toEqual({ remaining: limit - 1, allowed: true, resetMs: windowMs })
})

test("hits late in a window do not lengthen it", () => {
  const { window, clock } = atTime()
  window.hit("acme")
  clock.now += 40_000
  expect(window.hit("acme").resetMs).toBe(20_000)
  clock.now += 20_000
  expect(window.hit("acme").remaining).toBe(limit - 1)
})

test("keys count apart, each in a window of its own", () => {
  const { window, clock } = atTime()
  window.hit("acme")
  clock.now += 30_000
  expect(window.hit("other")).toEqual({ remaining: limit - 1, allowed: true, resetMs: windowMs })
  clock.now += 30_000
  expect(window.hit("acme").remaining).toBe(limit - 1)
  expect(window.hit("other")).toEqual({ remaining: limit - 2, allowed: true, resetMs: 30_000 })
  clock.now += 29_999
  expect(window.hit("other")).toEqual({ remaining: limit - 3, allowed: true, resetMs: 1 })
})

test("counts agree with a plain count per key at random times", () => {
  const { window, clock } = atTime()
  const plain = new Map<string, { start: number; count: number }>()
  let seed = 7
  const random = (below: number): number => {
    seed = (seed * 48_271) % 0x7fffffff
    return seed % below
  }
  for (let step = 0; step < 20_000; step++) {
    clock.now += random(100) === 0 ? random(3 * windowMs) : random(500)
    const key = `k${random(20)}`
    const known = plain.get(key)
    const open = known !== undefined && clock.now - known.start < windowMs ? known : { start: clock.now, count: 0 }
    open.count++
    plain.set(key, open)
    const resetMs = open.start + windowMs - clock.now
    expect(window.hit(key)).toEqual({ remaining: limit - open.count, allowed: open.count <= limit, resetMs })
  }
})

test("keys that stay away do not pile up", () => {
  const { window, clock } = atTime()
  const perSecond = 100
  let most = 0
  for (let key = 0; key < 100_000; key++) {
    if (key % perSecond === 0) clock.now += 1_000
    window.hit(`key-${key}`)
    most = Math.max(most, window.size)
  }
  expect(most).toBeLessThanOrEqual(2 * perSecond * (windowMs / 1_000))
})

test("a hundred thousand keys at once are gone with the first hit two windows later", () => {
  const { window, clock } = atTime()
  for (let key = 0; key < 100_000; key++) window.hit(`key-${key}`)
  expect(window.size).toBe(100_000)
  clock.now += 2 * windowMs
  window.hit("acme")
  expect(window.size).toBe(1)
})

test("a clock set back far does not hold a refusal open", () => {
  const { window, clock } = atTime(10 * windowMs)
  for (let count = 0; count <= limit; count++) window.hit("acme")
  clock.now = 0
  expect(window.hit("acme")).toEqual({ remaining: limit - 1, allowed: true, resetMs: windowMs })
})
