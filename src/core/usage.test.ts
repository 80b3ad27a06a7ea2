import { describe, expect, test } from "bun:test"
import { readChatUsage } from "./usage.ts"

const nothing = { input: 0, cachedInput: 0, cacheWrite: 0, output: 0, reasoning: 0 }

describe("a usage of chat completions", () => {
  test("with all details", () => {
    expect(
      readChatUsage({
        prompt_tokens: 100,
        completion_tokens: 50,
        total_tokens: 150,
        prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 7 },
        completion_tokens_details: { reasoning_tokens: 30 },
      }),
    ).toEqual({ input: 100, cachedInput: 60, cacheWrite: 7, output: 50, reasoning: 30 })
  })

  test("other vendors' names for cached and cache-written tokens", () => {
    expect(readChatUsage({ prompt_tokens: 9, prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 5 })).toEqual({
      ...nothing,
      input: 9,
      cachedInput: 4,
    })
    expect(readChatUsage({ prompt_tokens: 9, prompt_tokens_details: { cache_creation_tokens: 3 } })).toEqual({
      ...nothing,
      input: 9,
      cacheWrite: 3,
    })
  })

  test("cached tokens told both ways are read once, from the details; null there says nothing", () => {
    const both = { prompt_tokens: 9, prompt_cache_hit_tokens: 4 }
    expect(readChatUsage({ ...both, prompt_tokens_details: { cached_tokens: 2 } })?.cachedInput).toBe(2)
    expect(readChatUsage({ ...both, prompt_tokens_details: { cached_tokens: null } })?.cachedInput).toBe(4)
    expect(readChatUsage({ ...both, prompt_tokens_details: null })?.cachedInput).toBe(4)
  })

  test("one of the two counts is enough, as embeddings have no output", () => {
    expect(readChatUsage({ prompt_tokens: 3, total_tokens: 3 })).toEqual({ ...nothing, input: 3 })
    expect(readChatUsage({ completion_tokens: 3 })).toEqual({ ...nothing, output: 3 })
  })

  test("an explicit zero is zero", () => {
    expect(readChatUsage({ prompt_tokens: 0, completion_tokens: 0 })).toEqual(nothing)
  })

  const odds: unknown[] = [-1, 1.5, "7", null, true, [], {}, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]
  test.each(odds.map((odd) => [odd] as const))("%p is not a number of tokens and counts as none", (odd) => {
    expect(readChatUsage({ prompt_tokens: 2, completion_tokens: odd })).toEqual({ ...nothing, input: 2 })
    expect(
      readChatUsage({
        prompt_tokens: 2,
        prompt_tokens_details: { cached_tokens: odd, cache_write_tokens: odd },
        completion_tokens_details: { reasoning_tokens: odd },
      }),
    ).toEqual({ ...nothing, input: 2 })
  })

  test("details that are no object are ignored", () => {
    expect(readChatUsage({ prompt_tokens: 2, prompt_tokens_details: [1], completion_tokens_details: "x" })).toEqual({
      ...nothing,
      input: 2,
    })
  })
})

describe("no usage", () => {
  const others: unknown[] = [
    undefined,
    null,
    "usage",
    3,
    [],
    [{ prompt_tokens: 1 }],
    {},
    { total_tokens: 5 },
    { input_tokens: 1, output_tokens: 2 },
    { prompt_tokens: null, completion_tokens: null },
    { prompt_tokens: "12", completion_tokens: -1 },
  ]
  test.each(others.map((value) => [value] as const))("%j", (value) => {
    expect(readChatUsage(value)).toBeNull()
  })
})
