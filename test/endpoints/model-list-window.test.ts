import { afterAll, expect, test } from "bun:test"
import { account, keyOf } from "../support/accounts.ts"
import { model, startGateway, upstream } from "../support/gateway.ts"

const limit = 240
const windowMs = 60_000

const gateway = await startGateway({
  upstreams: [upstream("a", "http://127.0.0.1:1/v1")],
  models: [model("m", ["a"])],
  plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" }],
  accounts: [account("early"), account("late")],
})
afterAll(() => gateway.stop())

async function hit(who: string): Promise<[status: number, remaining: string | null]> {
  const response = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${keyOf(who)}` } })
  await response.arrayBuffer()
  return [response.status, response.headers.get("x-ratelimit-remaining")]
}

// The one test that waits for a real window, and so takes a minute; all else about windows is tried with a clock of its own.
test("a window lasts 60 s from an account's first call; refused calls do not lengthen it, and the next one is fresh", async () => {
  for (let count = 1; count <= limit; count++) expect(await hit("early")).toEqual([200, String(limit - count)])
  const begun = performance.now()
  const until = (ms: number): Promise<void> => Bun.sleep(begun + ms - performance.now())
  expect(await hit("early")).toEqual([429, "-1"])
  await until(windowMs / 2)
  expect(await hit("early")).toEqual([429, "-2"])
  expect(await hit("late")).toEqual([200, "239"])
  await until(windowMs * 0.9)
  expect(await hit("early")).toEqual([429, "-3"])
  await until(windowMs + 100)
  expect(await hit("early")).toEqual([200, "239"])
  // The other account's window is in its middle.
  expect(await hit("late")).toEqual([200, "238"])
}, 90_000)
