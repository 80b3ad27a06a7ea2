import { expect, test } from "bun:test"
import { anyDuration, fitDuration, seconds, secondsFrom } from "./duration-rule.ts"

const list = seconds([4, 6, 8], 8)
const range = secondsFrom(3, 15, 5)

test("where the caller says nothing, the usual length is asked for", () => {
  expect(fitDuration(null, list)).toBe(8)
  expect(fitDuration(null, range)).toBe(5)
  expect(fitDuration(null, anyDuration)).toBe(5)
})

test("a length that a model makes is asked for as it is", () => {
  for (const asked of [4, 6, 8]) expect(fitDuration(asked, list)).toBe(asked)
  for (const asked of [3, 4, 15]) expect(fitDuration(asked, range)).toBe(asked)
  for (const asked of [1, 60]) expect(fitDuration(asked, anyDuration)).toBe(asked)
})

// biome-ignore format: a table
test.each([
  ["a list", list, 5, "4, 6, 8 seconds"],
  ["a list, beyond its end", list, 10, "4, 6, 8 seconds"],
  ["a range, before its start", range, 2, "3 to 15 seconds"],
  ["a range, beyond its end", range, 16, "3 to 15 seconds"],
] as const)("%s refuses another length with a 400 that says what it takes", (_, rule, asked, takes) => {
  expect(() => fitDuration(asked, rule)).toThrow(
    expect.objectContaining({
      code: "invalid_parameter",
      status: 400,
      message: `duration: this model does not make ${asked} seconds; it takes ${takes}`,
    }),
  )
})
