import { expect, test } from "bun:test"
import { sampleUpstream } from "../../test/support/catalog-samples.ts"
import { upstreamLoad } from "./upstream-load.ts"

test("an upstream has room up to its own limit, and again when a place is given back", () => {
  const load = upstreamLoad()
  const upstream = sampleUpstream("a", { concurrency: 2 })
  const leaveFirst = load.enter(upstream)
  expect(load.hasRoom(upstream)).toBe(true)
  load.enter(upstream)
  expect(load.hasRoom(upstream)).toBe(false)
  leaveFirst()
  expect(load.hasRoom(upstream)).toBe(true)
})

test("a place given back twice is given back once", () => {
  const load = upstreamLoad()
  const upstream = sampleUpstream("a", { concurrency: 1 })
  const leave = load.enter(upstream)
  leave()
  leave()
  load.enter(upstream)
  expect(load.hasRoom(upstream)).toBe(false)
})

test("without a limit there is always room", () => {
  const load = upstreamLoad()
  const upstream = sampleUpstream("a", { concurrency: 0 })
  for (let i = 0; i < 1000; i++) load.enter(upstream)
  expect(load.hasRoom(upstream)).toBe(true)
})

test("one upstream's load is not another's", () => {
  const load = upstreamLoad()
  load.enter(sampleUpstream("a", { concurrency: 1 }))
  expect(load.hasRoom(sampleUpstream("b", { concurrency: 1 }))).toBe(true)
})

test("an edited upstream keeps its load: it is known by its id", () => {
  const load = upstreamLoad()
  const leave = load.enter(sampleUpstream("a", { concurrency: 5 }))
  const edited = sampleUpstream("a", { concurrency: 1 })
  expect(load.hasRoom(edited)).toBe(false)
  leave()
  expect(load.hasRoom(edited)).toBe(true)
})
