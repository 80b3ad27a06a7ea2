import { expect, test } from "bun:test"
import { sampleUpstream } from "../../test/support/catalog-samples.ts"
import { credentialPools } from "./credentials.ts"

function pools() {
  const clock = { now: 1000 }
  return { clock, credential: credentialPools(() => clock.now) }
}

const three = sampleUpstream("three", { credentials: ["k1", "k2", "k3"] })

test("no key: none is sent", () => {
  expect(pools().credential(sampleUpstream("none", { credentials: [] })).secret).toBeNull()
})

test("a single key is used whatever the vendor says about it", () => {
  const { credential } = pools()
  const upstream = sampleUpstream("one", { credentials: ["only"] })
  credential(upstream).report(401)
  credential(upstream).report(429)
  expect(credential(upstream).secret).toBe("only")
})

test("the keys of a pool take turns", () => {
  const { credential } = pools()
  expect(Array.from({ length: 7 }, () => credential(three).secret)).toEqual(["k1", "k2", "k3", "k1", "k2", "k3", "k1"])
})

test.each([
  [401, 60_000],
  [402, 60_000],
  [403, 60_000],
  [429, 10_000],
])("a key that got %d rests for %d ms, then takes its turn again", (status, restMs) => {
  const { clock, credential } = pools()
  credential(three).report(status)
  clock.now += restMs - 1
  expect(Array.from({ length: 4 }, () => credential(three).secret)).toEqual(["k2", "k3", "k2", "k3"])
  clock.now += 1
  expect(Array.from({ length: 3 }, () => credential(three).secret)).toEqual(["k1", "k2", "k3"])
})

test.each([200, 400, 404, 408, 500, 503])("a key that got %d goes on", (status) => {
  const { credential } = pools()
  credential(three).report(status)
  expect(Array.from({ length: 3 }, () => credential(three).secret)).toEqual(["k2", "k3", "k1"])
})

test("a report that comes late rests the key it was about", () => {
  const { credential } = pools()
  const [first] = [credential(three), credential(three)]
  first.report(401)
  expect(Array.from({ length: 3 }, () => credential(three).secret)).toEqual(["k3", "k2", "k3"])
})

test("every key rests: they take turns all the same", () => {
  const { credential } = pools()
  for (let i = 0; i < 3; i++) credential(three).report(429)
  expect(Array.from({ length: 4 }, () => credential(three).secret)).toEqual(["k1", "k2", "k3", "k1"])
})

test("one upstream's turns and rests are not another's", () => {
  const { credential } = pools()
  const other = sampleUpstream("other", { credentials: ["k1", "x2"] })
  credential(three).report(401)
  expect(credential(other).secret).toBe("k1")
})
