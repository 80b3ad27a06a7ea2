import { expect, test } from "bun:test"
import fc from "fast-check"
import { Lru } from "./lru.ts"

test("forgets what was used longest ago, where reading is using", () => {
  const lru = new Lru<string, number>(2)
  lru.set("a", 1)
  lru.set("b", 2)
  expect(lru.get("a")).toBe(1)
  lru.set("c", 3)
  expect(lru.get("b")).toBeUndefined()
  expect(lru.get("a")).toBe(1)
  expect(lru.get("c")).toBe(3)
})

test("setting again replaces the value and counts as use", () => {
  const lru = new Lru<string, number>(2)
  lru.set("a", 1)
  lru.set("b", 2)
  lru.set("a", 10)
  expect(lru.size).toBe(2)
  lru.set("c", 3)
  expect(lru.get("a")).toBe(10)
  expect(lru.get("b")).toBeUndefined()
})

test("falsy values are values", () => {
  const lru = new Lru<string, number | string | null>(3)
  lru.set("zero", 0)
  lru.set("empty", "")
  lru.set("null", null)
  expect([lru.get("zero"), lru.get("empty"), lru.get("null")]).toEqual([0, "", null])
})

test("cleared, it holds nothing and can be used on", () => {
  const lru = new Lru<string, number>(2)
  lru.set("a", 1)
  lru.clear()
  expect(lru.size).toBe(0)
  expect(lru.get("a")).toBeUndefined()
  lru.set("a", 2)
  expect(lru.get("a")).toBe(2)
})

test("behaves as a list ordered by use, cut at the capacity", () => {
  const step = fc.record({ set: fc.boolean(), key: fc.nat(6), value: fc.nat(99) })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 60 }), (capacity, steps) => {
      const lru = new Lru<number, number>(capacity)
      let list: { key: number; value: number }[] = []
      for (const { set, key, value } of steps) {
        const held = list.find((entry) => entry.key === key)
        if (!set) expect(lru.get(key)).toBe(held?.value)
        else lru.set(key, value)
        const entry = set ? { key, value } : held
        if (entry !== undefined) list = [...list.filter((other) => other.key !== key), entry].slice(-capacity)
        expect(lru.size).toBe(list.length)
      }
    }),
  )
})
