import { afterEach, expect, test } from "bun:test"
import { type StreamTimeout, Watchdog } from "./watchdog.ts"

const never = 60_000
/** Long against `silenceMs`, so that a busy machine does not turn a right answer into a wrong one. */
const patienceMs = 5000
const started: Watchdog[] = []

afterEach(() => {
  for (const dog of started.splice(0)) dog.stop()
})

function watch(silenceMs: number, totalMs: number) {
  const barks: StreamTimeout[] = []
  const { promise: bark, resolve } = Promise.withResolvers<StreamTimeout>()
  const began = performance.now()
  const dog = new Watchdog(silenceMs, began + totalMs, (code) => {
    barks.push(code)
    resolve(code)
  })
  started.push(dog)
  const first = () => Promise.race([bark, Bun.sleep(patienceMs).then(() => "quiet" as const)])
  return { dog, barks, first, since: () => performance.now() - began }
}

test("silence while waiting for the upstream ends the stream, not before its time and once", async () => {
  const { dog, barks, first, since } = watch(60, never)
  dog.waiting()
  expect(await first()).toBe("stream_silence_timeout")
  expect(since()).toBeGreaterThanOrEqual(59)
  await Bun.sleep(150)
  expect(barks).toHaveLength(1)
})

test("progress puts the silence off", async () => {
  const { dog, barks, first, since } = watch(400, never)
  dog.waiting()
  for (let step = 0; step < 8; step++) {
    await Bun.sleep(80)
    dog.progressed()
  }
  expect(barks).toEqual([])
  expect(await first()).toBe("stream_silence_timeout")
  expect(since()).toBeGreaterThanOrEqual(8 * 80 + 399)
})

test("chunks that are no progress do not put it off", async () => {
  const { dog, first } = watch(200, never)
  dog.waiting()
  const pings = setInterval(() => {
    dog.resting(false)
    dog.waiting()
  }, 20)
  expect(await first()).toBe("stream_silence_timeout")
  clearInterval(pings)
})

test("a caller that reads slowly is not upstream silence", async () => {
  const { dog, barks, first, since } = watch(100, never)
  dog.waiting()
  dog.resting(true)
  await Bun.sleep(450)
  expect(barks).toEqual([])
  dog.waiting()
  expect(await first()).toBe("stream_silence_timeout")
  // The full allowance was still there when the upstream was asked again.
  expect(since()).toBeGreaterThanOrEqual(450 + 98)
})

test("waiting before a pause without progress still counts after it", async () => {
  const { dog, first, since } = watch(300, never)
  dog.waiting()
  await Bun.sleep(200)
  dog.resting(false)
  await Bun.sleep(50)
  dog.waiting()
  expect(await first()).toBe("stream_silence_timeout")
  expect(since()).toBeGreaterThanOrEqual(349)
})

test("the total time ends a stream that makes progress", async () => {
  const { dog, first, since } = watch(never, 150)
  dog.waiting()
  const steps = setInterval(() => dog.progressed(), 10)
  expect(await first()).toBe("stream_total_timeout")
  expect(since()).toBeGreaterThanOrEqual(149)
  clearInterval(steps)
})

test("the total time ends a stream whose caller does not read", async () => {
  const { dog, first } = watch(never, 100)
  dog.resting(true)
  expect(await first()).toBe("stream_total_timeout")
})

test("both at once: the total time has the word", async () => {
  const { first } = watch(50, 50)
  expect(await first()).toBe("stream_total_timeout")
})

test("a deadline that is already over is told at once, but not inside the constructor", async () => {
  const { barks, first } = watch(never, -1000)
  expect(barks).toEqual([])
  expect(await first()).toBe("stream_total_timeout")
})

test("stopped, it stays quiet", async () => {
  const { dog, barks } = watch(40, 80)
  dog.waiting()
  dog.stop()
  dog.stop()
  await Bun.sleep(200)
  expect(barks).toEqual([])
})
