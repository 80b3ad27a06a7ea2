import { expect, test } from "bun:test"
import { untilNext } from "./poller.ts"

const pauses = (vendor: string, polls: number) =>
  Array.from({ length: 200 }, () => untilNext({ polls, route: { vendor } }))

test.each([
  ["kling", 0, 1800, 2200],
  ["kling", 3, 3954, 4834],
  ["kling", 500, 13_500, 16_500],
  // It asks not to be polled more often than every five seconds.
  ["runway", 0, 5000, 5500],
])("%s after %d looks: %d to %d ms, and no two jobs keep in step", (vendor, polls, least, most) => {
  const drawn = pauses(vendor, polls)
  for (const pause of drawn) expect(pause).toBeWithin(least, most + 1)
  expect(new Set(drawn).size).toBeGreaterThan(50)
  expect(Math.max(...drawn) - Math.min(...drawn)).toBeGreaterThan((most - least) / 2)
})
