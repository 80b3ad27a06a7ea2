import { expect, test } from "bun:test"
import { newApiKey, newId, newRequestId } from "./ids.ts"

test("ids are UUIDs of version 7 and sort by the time they were made", () => {
  const ids = Array.from({ length: 1000 }, newId)
  expect(ids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
})

test("request ids are req_ and 32 hexadecimal digits", () => {
  expect(newRequestId()).toMatch(/^req_[0-9a-f]{32}$/)
  expect(newRequestId()).not.toBe(newRequestId())
})

test("API keys are sk-tg- and 43 base62 characters, never the same twice", () => {
  const keys = Array.from({ length: 500 }, newApiKey)
  for (const key of keys) expect(key).toMatch(/^sk-tg-[0-9A-Za-z]{43}$/)
  expect(new Set(keys).size).toBe(keys.length)
})

test("API keys use every character about equally often", () => {
  const counts = new Map<string, number>()
  for (let made = 0; made < 4000; made++) {
    for (const letter of newApiKey().slice("sk-tg-".length)) counts.set(letter, (counts.get(letter) ?? 0) + 1)
  }
  const expected = (4000 * 43) / 62
  expect(counts.size).toBe(62)
  // Taking a plain remainder would give the first eight letters a quarter more than the others; chance strays by 2 %.
  for (const count of counts.values()) expect(Math.abs(count / expected - 1)).toBeLessThan(0.12)
})
