import { expect, test } from "bun:test"
import { lifecycle } from "./lifecycle.ts"

/** Whether a promise is settled by now, without waiting for it. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  return (await Promise.race([promise.then(() => true), Bun.sleep(0).then(() => false)])) === true
}

test("requests are counted in and out, each once", () => {
  const life = lifecycle()
  const leaveFirst = life.enter()
  const leaveSecond = life.enter()
  expect(life.inFlight).toBe(2)
  leaveFirst()
  leaveFirst()
  expect(life.inFlight).toBe(1)
  leaveSecond()
  expect(life.inFlight).toBe(0)
  expect(life.draining).toBe(false)
})

test("an idle instance drains after a moment in which nobody asks", async () => {
  const life = lifecycle()
  const drained = life.drain()
  expect(life.draining).toBe(true)
  expect(await isSettled(drained)).toBe(false)
  await drained
})

test.concurrent("it waits for the last request in flight, however long that takes", async () => {
  const life = lifecycle()
  const leave = [life.enter(), life.enter()]
  const drained = life.drain()
  await Bun.sleep(500)
  leave[0]!()
  await Bun.sleep(100)
  expect(await isSettled(drained)).toBe(false)
  leave[1]!()
  await drained
  expect(life.inFlight).toBe(0)
})

test.concurrent("a caller that was just turned away keeps the door open a little longer", async () => {
  const life = lifecycle()
  const began = performance.now()
  const drained = life.drain()
  for (let i = 0; i < 8; i++) {
    await Bun.sleep(100)
    life.turnedAway()
  }
  expect(await isSettled(drained)).toBe(false)
  await drained
  expect(performance.now() - began).toBeGreaterThanOrEqual(800 + 290)
})

test.concurrent("but one that never stops asking does not keep it alive", async () => {
  const life = lifecycle()
  const drained = life.drain()
  const asking = setInterval(() => life.turnedAway(), 20)
  const outcome = await Promise.race([drained.then(() => "drained"), Bun.sleep(20_000).then(() => "kept alive")])
  clearInterval(asking)
  expect(outcome).toBe("drained")
}, 30_000)

test.concurrent("drained twice at once, both are told", async () => {
  const life = lifecycle()
  const leave = life.enter()
  const both = [life.drain(), life.drain()]
  await Bun.sleep(20)
  leave()
  await Promise.all(both)
})
