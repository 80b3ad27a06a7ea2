import { expect, test } from "bun:test"
import { readResponsesUsage, writeResponsesUsage } from "./responses-usage.ts"

test("every count of a usage is read", () => {
  const usage = readResponsesUsage({
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
    output_tokens: 40,
    output_tokens_details: { reasoning_tokens: 25 },
    total_tokens: 140,
  })
  expect(usage).toEqual({ input: 100, cachedInput: 60, cacheWrite: 10, output: 40, reasoning: 25 })
})

test("absent or broken details count as nothing", () => {
  const nothing = { cachedInput: 0, cacheWrite: 0, reasoning: 0 }
  expect(readResponsesUsage({ input_tokens: 3, output_tokens: 2 })).toEqual({ input: 3, output: 2, ...nothing })
  expect(readResponsesUsage({ output_tokens: 2, input_tokens_details: null })).toEqual({
    input: 0,
    output: 2,
    ...nothing,
  })
  expect(readResponsesUsage({ input_tokens: 3, input_tokens_details: { cached_tokens: -1 } })?.cachedInput).toBe(0)
})

test.each([
  [null],
  [undefined],
  ["12"],
  [[]],
  [{}],
  [{ input_tokens: "3" }],
  [{ input_tokens: 1.5 }],
  [{ total_tokens: 9 }],
])("%p is no usage to charge by", (usage) => {
  expect(readResponsesUsage(usage)).toBeNull()
})

test("what is written is read back the same", () => {
  const usage = { input: 9, cachedInput: 4, cacheWrite: 2, output: 5, reasoning: 3 }
  expect(readResponsesUsage(writeResponsesUsage(usage))).toEqual(usage)
  expect(writeResponsesUsage(usage).total_tokens).toBe(14)
})
