import { expect, test } from "bun:test"
import { type Endpoint, endpoints } from "../core/endpoints.ts"
import type { Price } from "../core/price.ts"
import { findVendor } from "./presets.ts"
import { endpointProblem, isPriced, isServed, routeProblem } from "./route-problem.ts"

function problem(vendor: string, price: Price, endpoints: readonly Endpoint[] | null = null): string | null {
  const preset = findVendor(vendor)
  if (preset === undefined) throw new Error(`no vendor ${vendor}`)
  return routeProblem(preset, "m", price, endpoints)
}

test("a price by character needs a vendor that speaks", () => {
  expect(problem("anthropic", { character: "0.000015" })).toBe(
    'model "m" cannot be served: vendor "anthropic" has no speech endpoint (it has: messages)',
  )
  expect(problem("openai", { character: "0.000015" })).toBeNull()
})

test("a price by image or second names the endpoints of which one is needed", () => {
  expect(problem("jina", { image: "0.04" })).toContain(
    "no image_generations, image_edits or image_variations endpoint (it has: embeddings, rerank)",
  )
  expect(problem("anthropic", { second: "0.1" })).toContain("no video, transcriptions or translations endpoint")
  expect(problem("bfl", { image: "0.04" })).toBeNull()
  expect(problem("kling", { second: "0.07" })).toBeNull()
})

test("tokens cannot be counted where only video is made, a request or nothing can", () => {
  expect(problem("kling", { input: "1", output: "2" })).toContain('vendor "kling" has no chat, responses')
  expect(problem("kling", { request: "0.5" })).toBeNull()
  expect(problem("kling", "free")).toBeNull()
})

test("video is served where an adapter speaks the vendor's protocol, whatever its preset says", () => {
  const preset = findVendor("zhipu")!
  const stranger = { ...preset, name: "stranger" }
  expect([isServed(preset, "video"), isServed(stranger, "video")]).toEqual([true, false])
  expect(isServed(stranger, "chat")).toBe(true)
  const onlyVideo = { ...stranger, paths: { video: "/videos", speech: "/speech" } }
  const problem = 'vendor "stranger" has no video endpoint (it has: speech)'
  expect(routeProblem(onlyVideo, "m", "free", ["video"])).toEndWith(problem)
  expect(routeProblem(onlyVideo, "m", { second: "0.1" }, null)).toEndWith(
    "has no video, transcriptions or translations endpoint (it has: speech)",
  )
})

test("one unit that fits is enough", () => {
  expect(problem("openai", { input: "1", second: "0.006" })).toBeNull()
})

test("listed endpoints may be served through a bridge, in the directions that exist", () => {
  expect(problem("anthropic", { input: "1" }, ["chat", "messages"])).toBeNull()
  expect(problem("deepseek", { input: "1" }, ["responses", "chat", "messages"])).toBeNull()
  expect(problem("anthropic", { input: "1" }, ["responses"])).toContain("no responses endpoint")
})

test("every listed endpoint that is missing is named", () => {
  expect(problem("deepseek", { input: "1" }, ["chat", "speech", "embeddings"])).toContain(
    "has no speech or embeddings endpoint (it has: chat, messages)",
  )
})

function pricedAt(price: Price): readonly Endpoint[] {
  return endpoints.filter((endpoint) => isPriced(price, endpoint))
}

test("a price is good where something that it names can be measured", () => {
  expect(pricedAt({ image: "0.04" })).toEqual(["image_generations", "image_edits", "image_variations"])
  expect(pricedAt({ character: "0.1" })).toEqual(["speech"])
  expect(pricedAt({ second: "0.1" })).toEqual(["transcriptions", "translations", "video"])
  expect(pricedAt({ second: "0.1", character: "0.1" })).toEqual(["speech", "transcriptions", "translations", "video"])
  expect(pricedAt({ input: "1" })).toEqual(endpoints.filter((endpoint) => endpoint !== "video"))
  expect(isPriced({ audio_input: "1" }, "translations")).toBe(true)
})

test("what writes no tokens cannot be charged by output alone", () => {
  for (const price of [{ output: "1" }, { audio_output: "1" }])
    for (const endpoint of ["embeddings", "rerank", "video"] as const) expect(isPriced(price, endpoint)).toBe(false)
})

test("a request and nothing can be measured anywhere", () => {
  expect(pricedAt("free")).toEqual([...endpoints])
  expect(pricedAt({ image: "1", request: "0" })).toEqual([...endpoints])
})

test("a tier does not make an endpoint good: where it does not fit there would be no price", () => {
  expect(isPriced({ image: "1", tiers: [{ aboveInput: 5, prices: { input: "1" } }] }, "chat")).toBe(false)
})

test("an endpoint that the price cannot measure is told with those that it can", () => {
  expect(endpointProblem({ character: "1" }, "chat")).toBe(
    "chat would cost nothing: a price by character can be measured at speech only (add another unit, such as request, or leave the endpoint out)",
  )
  expect(endpointProblem({ character: "1" }, "speech")).toBeNull()
  expect(endpointProblem("free", "chat")).toBeNull()
})
