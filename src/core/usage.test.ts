import { describe, expect, test } from "bun:test"
import { readChatUsage, readInputUsage } from "./usage.ts"

const nothing = { input: 0, cachedInput: 0, cacheWrite: 0, audioInput: 0, output: 0, reasoning: 0, audioOutput: 0 }

/** Values that are no number of tokens; null is none, for it says nothing. */
const odds: unknown[] = [-1, 1.5, "7", true, [], {}, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 1_000_000_001]

describe("a usage of chat completions", () => {
  test("with all details", () => {
    expect(
      readChatUsage({
        prompt_tokens: 100,
        completion_tokens: 50,
        total_tokens: 150,
        prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 7, audio_tokens: 5 },
        completion_tokens_details: { reasoning_tokens: 30, audio_tokens: 11 },
      }),
    ).toEqual({
      input: 100,
      cachedInput: 60,
      cacheWrite: 7,
      audioInput: 5,
      output: 50,
      reasoning: 30,
      audioOutput: 11,
    })
  })

  test("other vendors' names for cached and cache-written tokens", () => {
    const counts = { prompt_tokens: 9, completion_tokens: 1 }
    expect(readChatUsage({ ...counts, prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 5 })).toEqual({
      ...nothing,
      input: 9,
      cachedInput: 4,
      output: 1,
    })
    expect(readChatUsage({ ...counts, prompt_tokens_details: { cache_creation_tokens: 3 } })).toEqual({
      ...nothing,
      input: 9,
      cacheWrite: 3,
      output: 1,
    })
  })

  test.each([
    [{ cached_tokens: 2 }, 2],
    [{ cached_tokens: null }, 4],
    [null, 4],
  ])("cached tokens told both ways are read once, from the details %p; null there says nothing", (details, cached) => {
    const both = { prompt_tokens: 9, completion_tokens: 1, prompt_cache_hit_tokens: 4 }
    expect(readChatUsage({ ...both, prompt_tokens_details: details })).toMatchObject({ cachedInput: cached })
  })

  test.each([
    ["inside the output", 41, 9],
    ["beside the output, as the total says,", 135, 103],
    ["with no total", undefined, 9],
  ])("reasoning told %s is output once", (_, total_tokens, output) => {
    const counts = { prompt_tokens: 32, completion_tokens: 9, completion_tokens_details: { reasoning_tokens: 94 } }
    expect(readChatUsage({ ...counts, total_tokens })).toMatchObject({ input: 32, output, reasoning: 94 })
  })

  test("an explicit zero is zero", () => {
    expect(readChatUsage({ prompt_tokens: 0, completion_tokens: 0 })).toEqual(nothing)
  })

  test("counts up to a thousand million are counts", () => {
    expect(readChatUsage({ prompt_tokens: 1_000_000_000, completion_tokens: 0 })).toMatchObject({ input: 1e9 })
  })

  test("details that are no object say nothing", () => {
    const usage = { prompt_tokens: 2, completion_tokens: 1 }
    expect(readChatUsage({ ...usage, prompt_tokens_details: [1], completion_tokens_details: "x" })).toEqual({
      ...nothing,
      input: 2,
      output: 1,
    })
  })
})

describe("nothing is charged by", () => {
  test.each(odds.map((odd) => [odd] as const))("%p, wherever a number of tokens should be", (odd) => {
    const counts = { prompt_tokens: 2, completion_tokens: 1 }
    for (const usage of [
      { ...counts, prompt_tokens: odd },
      { ...counts, completion_tokens: odd },
      { ...counts, prompt_cache_hit_tokens: odd },
      { ...counts, prompt_tokens_details: { cached_tokens: odd } },
      { ...counts, prompt_tokens_details: { cache_write_tokens: odd } },
      { ...counts, prompt_tokens_details: { audio_tokens: odd } },
      { ...counts, completion_tokens_details: { reasoning_tokens: odd } },
      { ...counts, completion_tokens_details: { audio_tokens: odd } },
    ]) {
      expect(readChatUsage(usage)).toBe("invalid")
    }
  })

  const others: unknown[] = [
    "usage",
    3,
    false,
    [],
    [{ prompt_tokens: 1, completion_tokens: 1 }],
    {},
    { total_tokens: 5 },
    { prompt_tokens: 5 },
    { completion_tokens: 5 },
    { input_tokens: 1, output_tokens: 2 },
    { prompt_tokens: null, completion_tokens: 3 },
  ]
  test.each(others.map((value) => [value] as const))("%j", (value) => {
    expect(readChatUsage(value)).toBe("invalid")
  })

  test("parts that are more than the whole", () => {
    const usage = (cached_tokens: number, cache_write_tokens: number) =>
      readChatUsage({
        prompt_tokens: 10,
        completion_tokens: 1,
        prompt_tokens_details: { cached_tokens, cache_write_tokens },
      })
    expect(usage(6, 4)).toMatchObject({ input: 10, cachedInput: 6, cacheWrite: 4 })
    expect(usage(6, 5)).toBe("invalid")
    expect(usage(11, 0)).toBe("invalid")
  })
})

test.each([[undefined], [null]])("%p is no usage", (usage) => {
  expect(readChatUsage(usage)).toBeNull()
  expect(readInputUsage(usage)).toBeNull()
})

describe("a usage of what only reads", () => {
  test.each([
    [{ prompt_tokens: 3, total_tokens: 3 }],
    [{ total_tokens: 3 }],
    [{ prompt_tokens: null, total_tokens: 3 }],
    [{ prompt_tokens: 3, completion_tokens: 0, total_tokens: 4 }],
  ])("%j is its input", (usage) => {
    expect(readInputUsage(usage)).toEqual({ ...nothing, input: 3 })
  })

  test.each([...odds, "usage", { completion_tokens: 1 }].map((odd) => [odd] as const))(
    "%j cannot be charged by",
    (odd) => {
      expect(readInputUsage({ total_tokens: odd })).toBe("invalid")
      expect(readInputUsage({ prompt_tokens: odd, total_tokens: 3 })).toBe("invalid")
      expect(readInputUsage(odd)).toBe("invalid")
    },
  )
})
