import { afterAll, expect, setDefaultTimeout, test } from "bun:test"
import type { Behaviour } from "../../simulator/behaviour.ts"
import { startSimulator } from "../../simulator/simulator.ts"
import { expectCharged, openShop, type Shop } from "../support/books.ts"
import { eventually, model } from "../support/gateway.ts"
import { stopWithoutComplaint } from "../support/scene.ts"

setDefaultTimeout(30_000)
const simulator = await startSimulator()
afterAll(() => stopWithoutComplaint(simulator))

const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
const old = { input: "1", output: "10" }
const next = { input: "7", output: "70" }
const dueByOld = 200_000n
const dueByNext = 1_400_000n

async function inFlight(shop: Shop): Promise<void> {
  await eventually(() => shop.vendor("a").calls.at(-1)?.bodyComplete)
}

const steps: Record<string, { stream: boolean; step: Behaviour }> = {
  "not streamed": { stream: false, step: { kind: "chat", usage, headDelayMs: 400 } },
  "streamed, before its first token": { stream: true, step: { kind: "chat", usage, firstTokenDelayMs: 400 } },
  "streamed, in its course": { stream: true, step: { kind: "chat", usage, text: "a b c d e", gapMs: 80 } },
}

test.each(Object.entries(steps))(
  "a price that changes while a request is in flight is not its own: %s",
  async (_, { stream, step }) => {
    await using shop = await openShop(simulator, { price: old })
    shop.vendor("a").behave(step)
    const asked = shop.chat({ stream })
    await inFlight(shop)
    await shop.gateway.apply({ models: [model("m", ["a"], { price: next })] })
    const before = await expectCharged(shop, await asked, dueByOld)
    const after = await expectCharged(shop, await shop.chat({ stream }), dueByNext)
    expect(before.price).toMatchObject({ units: old })
    expect(after.price).toMatchObject({ units: next })
    expect(after.price!.version).toBeGreaterThan(before.price!.version)
  },
)

test("a plan's multiplier is pinned alike", async () => {
  await using shop = await openShop(simulator, { price: old, multiplier: "2" })
  shop.vendor("a").behave({ kind: "chat", usage, headDelayMs: 300 })
  const asked = shop.chat()
  await inFlight(shop)
  await shop.gateway.apply({
    plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "0.5" }],
  })
  const before = await expectCharged(shop, await asked, 2n * dueByOld)
  expect(before.price).toMatchObject({ multiplier: "2" })
  const after = await expectCharged(shop, await shop.chat(), dueByOld / 2n)
  expect(after.price).toMatchObject({ multiplier: "0.5" })
})

test("a failover in mid-change is charged by the price it was admitted with", async () => {
  await using shop = await openShop(simulator, { price: old, upstreams: { a: {}, b: {} } })
  shop.vendor("a").behave({ kind: "status", status: 401, delayMs: 300 })
  shop.vendor("b").behave({ kind: "chat", usage })
  const asked = shop.chat()
  await inFlight(shop)
  await shop.gateway.apply({ models: [model("m", ["a", "b"], { price: next })] })
  const line = await expectCharged(shop, await asked, dueByOld)
  expect(line.measured).toMatchObject({ upstream: "b" })
})
