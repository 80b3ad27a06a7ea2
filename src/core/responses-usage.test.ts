import { expect, test } from "bun:test"
import { readResponsesUsage, writeResponsesUsage } from "./responses-usage.ts"

const nothing = { cachedInput: 0, cacheWrite: 0, audioInput: 0, reasoning: 0, audioOutput: 0 }

test("every count of a usage is read", () => {
  const usage = readResponsesUsage({
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 60, cache_write_tokens: 10, audio_tokens: 3 },
    output_tokens: 40,
    output_tokens_details: { reasoning_tokens: 25, audio_tokens: 2 },
    total_tokens: 140,
  })
  expect(usage).toEqual({
    input: 100,
    cachedInput: 60,
    cacheWrite: 10,
    audioInput: 3,
    output: 40,
    reasoning: 25,
    audioOutput: 2,
  })
})

test("details are read under the name that transcripts give them too", () => {
  const usage = { input_tokens: 14, output_tokens: 4, input_token_details: { text_tokens: 4, audio_tokens: 10 } }
  expect(readResponsesUsage(usage)).toEqual({ ...nothing, input: 14, output: 4, audioInput: 10 })
})

test("absent details count as nothing, an explicit zero is zero", () => {
  expect(readResponsesUsage({ input_tokens: 3, output_tokens: 2 })).toEqual({ ...nothing, input: 3, output: 2 })
  const nulls = { input_tokens_details: null, output_tokens_details: { reasoning_tokens: null } }
  expect(readResponsesUsage({ input_tokens: 0, output_tokens: 0, ...nulls })).toEqual({
    ...nothing,
    input: 0,
    output: 0,
  })
})

test.each([[null], [undefined]])("%p is no usage", (usage) => {
  expect(readResponsesUsage(usage)).toBeNull()
})

test.each([
  ["12"],
  [[]],
  [{}],
  [{ input_tokens: 3 }],
  [{ output_tokens: 3 }],
  [{ total_tokens: 9 }],
  [{ input_tokens: "3", output_tokens: 1 }],
  [{ input_tokens: 1.5, output_tokens: 1 }],
  [{ input_tokens: 1, output_tokens: 1_000_000_001 }],
  [{ input_tokens: 3, output_tokens: 1, input_tokens_details: { cached_tokens: -1 } }],
  [{ input_tokens: 3, output_tokens: 1, input_token_details: { audio_tokens: "2" } }],
  [{ input_tokens: 3, output_tokens: 1, output_tokens_details: { reasoning_tokens: 0.5 } }],
  [{ input_tokens: 3, output_tokens: 1, input_tokens_details: { cached_tokens: 2, cache_write_tokens: 2 } }],
])("%p cannot be charged by", (usage) => {
  expect(readResponsesUsage(usage)).toBe("invalid")
})

test("what is written is read back the same", () => {
  const usage = { ...nothing, input: 9, cachedInput: 4, cacheWrite: 2, output: 5, reasoning: 3 }
  expect(readResponsesUsage(writeResponsesUsage(usage))).toEqual(usage)
  expect(writeResponsesUsage(usage).total_tokens).toBe(14)
})
