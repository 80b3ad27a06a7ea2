import { expect, test } from "bun:test"
import { pause } from "./pause.ts"

test("waits its time", async () => {
  const began = performance.now()
  await pause(60, new AbortController().signal)
  expect(performance.now() - began).toBeGreaterThanOrEqual(50)
})

test("ends when the signal fires, and at once where it had fired", async () => {
  const controller = new AbortController()
  setTimeout(() => controller.abort(), 10)
  await pause(60_000, controller.signal)
  await pause(60_000, controller.signal)
  expect(controller.signal.aborted).toBe(true)
})
