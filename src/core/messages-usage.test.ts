import { expect, test } from "bun:test"
import { overlayMessagesUsage, readMessagesUsage, writeMessagesUsage } from "./messages-usage.ts"

const nothing = { input: 0, cachedInput: 0, cacheWrite: 0, audioInput: 0, output: 0, reasoning: 0, audioOutput: 0 }

test("cached and cache-written tokens are counted inside the input, once", () => {
  const usage = { input_tokens: 10, cache_read_input_tokens: 90, cache_creation_input_tokens: 7, output_tokens: 5 }
  expect(readMessagesUsage(usage)).toEqual({ ...nothing, input: 107, cachedInput: 90, cacheWrite: 7, output: 5 })
})

test("thinking tokens are told as reasoning and stay part of the output", () => {
  const usage = { input_tokens: 1, output_tokens: 50, output_tokens_details: { thinking_tokens: 40 } }
  expect(readMessagesUsage(usage)).toEqual({ ...nothing, input: 1, output: 50, reasoning: 40 })
})

test("cache writes are summed by lifetime where the total is missing, and not counted twice where it is there", () => {
  const cache_creation = { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 4 }
  const without = { input_tokens: 1, output_tokens: 1, cache_creation_input_tokens: null, cache_creation }
  expect(readMessagesUsage(without)).toEqual({ ...nothing, input: 8, cacheWrite: 7, output: 1 })
  const both = { ...without, cache_creation_input_tokens: 7 }
  expect(readMessagesUsage(both)).toEqual({ ...nothing, input: 8, cacheWrite: 7, output: 1 })
})

test("an explicit zero is a usage", () => {
  expect(readMessagesUsage({ input_tokens: 0, output_tokens: 0 })).toEqual(nothing)
})

test.each([[null], [undefined]])("%p is no usage", (usage) => {
  expect(readMessagesUsage(usage)).toBeNull()
})

test.each([
  ["12"],
  [[1]],
  [{}],
  [{ input_tokens: 3 }],
  [{ output_tokens: 3 }],
  [{ input_tokens: "12", output_tokens: 1 }],
  [{ input_tokens: 1, output_tokens: -1 }],
  [{ input_tokens: 1.5, output_tokens: 1 }],
  [{ input_tokens: 1, output_tokens: Number.NaN }],
  [{ input_tokens: 1_000_000_001, output_tokens: 1 }],
  [{ cache_read_input_tokens: 9 }],
  [{ input_tokens: 3, output_tokens: 1, cache_read_input_tokens: -4 }],
  [{ input_tokens: 3, output_tokens: 1, cache_creation_input_tokens: 0.5 }],
  [{ input_tokens: 3, output_tokens: 1, cache_creation: { ephemeral_1h_input_tokens: "4" } }],
  [{ input_tokens: 3, output_tokens: 1, output_tokens_details: { thinking_tokens: -1 } }],
  [{ input_tokens: 600_000_000, output_tokens: 1, cache_read_input_tokens: 600_000_000 }],
])("%p cannot be charged by", (usage) => {
  expect(readMessagesUsage(usage)).toBe("invalid")
})

test("a later event replaces what it names and keeps what it leaves out or nulls", () => {
  const start = { input_tokens: 10, cache_read_input_tokens: 4, output_tokens: 1, service_tier: "standard" }
  const delta = { input_tokens: null, cache_read_input_tokens: 6, output_tokens: 25 }
  expect(readMessagesUsage(overlayMessagesUsage(start, delta))).toEqual({
    ...nothing,
    input: 16,
    cachedInput: 6,
    output: 25,
  })
  expect(start.output_tokens).toBe(1)
})

test("what is no usage overlays nothing", () => {
  expect(overlayMessagesUsage(null, "x")).toEqual({})
  expect(overlayMessagesUsage({ input_tokens: 2 }, undefined)).toEqual({ input_tokens: 2 })
  expect(overlayMessagesUsage(7, { output_tokens: 2 })).toEqual({ output_tokens: 2 })
})

test("what is written reads back as what was meant", () => {
  const usage = { ...nothing, input: 107, cachedInput: 90, cacheWrite: 7, output: 50, reasoning: 40 }
  expect(writeMessagesUsage(usage)).toEqual({
    input_tokens: 10,
    output_tokens: 50,
    cache_creation_input_tokens: 7,
    cache_read_input_tokens: 90,
    output_tokens_details: { thinking_tokens: 40 },
  })
  expect(readMessagesUsage(writeMessagesUsage(usage))).toEqual(usage)
})

test("no count that is written is below zero", () => {
  expect(writeMessagesUsage({ ...nothing, input: 5, cachedInput: 9 })).toMatchObject({ input_tokens: 5 })
})
