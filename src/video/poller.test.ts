import { expect, test } from "bun:test"
import { untilNext } from "./poller.ts"

const pauses = (vendor: string, polls: number) =>
  Array.from({ length: 200 }, () => untilNext({ polls, route: { vendor } }))

test.each([
  ["kling", 0, 2000],
  ["kling", 3, 4394],
  ["kling", 500, 15_000],
  // It asks not to be polled more often than every five seconds.
  ["runway", 0, 5000],
])("%s after %d looks: about %d ms, a tenth more or less, and no two jobs keep in step", (vendor, polls, about) => {
  const drawn = pauses(vendor, polls)
  for (const pause of drawn) {
    expect(pause).toBeGreaterThanOrEqual(Math.floor(about * 0.9))
    expect(pause).toBeLessThanOrEqual(Math.ceil(about * 1.1))
  }
  expect(new Set(drawn).size).toBeGreaterThan(50)
  expect(Math.max(...drawn) - Math.min(...drawn)).toBeGreaterThan(about * 0.1)
})
