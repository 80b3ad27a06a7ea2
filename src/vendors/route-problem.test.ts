import { expect, test } from "bun:test"
import type { Price } from "../core/catalog.ts"
import type { Endpoint } from "../core/endpoints.ts"
import { findVendor } from "./presets.ts"
import { routeProblem } from "./route-problem.ts"

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
