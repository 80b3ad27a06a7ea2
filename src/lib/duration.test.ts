import { expect, test } from "bun:test"
import fc from "fast-check"
import { formatDuration, parseDuration } from "./duration.ts"

test.each([
  ["500ms", 500],
  ["60s", 60_000],
  ["30m", 1_800_000],
  ["2h", 7_200_000],
  ["90d", 7_776_000_000],
  ["0s", 0],
])("%s is %d milliseconds", (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

test.each(["60", "", "s", "-5s", "1.5s", "60 s", "60S", "1h30m", "∞s", "1e3s", "9".repeat(40)])(
  "%p is no duration",
  (text) => {
    expect(parseDuration(text)).toBeNull()
  },
)

test("a printed duration reads back as the same milliseconds", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 31 - 1 }), (ms) => {
      expect(parseDuration(formatDuration(ms))).toBe(ms)
    }),
  )
})

test("a duration is printed in the largest unit that is exact", () => {
  const printed = [172_800_000, 90_000_000, 7_200_000, 1_800_000, 90_000, 1_500, 0].map(formatDuration)
  expect(printed).toEqual(["2d", "25h", "2h", "30m", "90s", "1500ms", "0ms"])
})
