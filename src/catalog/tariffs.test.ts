import { expect, test } from "bun:test"
import type { Model, Plan, Snapshot } from "../core/catalog.ts"
import { tariffFor } from "./tariffs.ts"

function model(input: string): Model {
  return { name: "m", price: { input }, tokenizer: "o200k_base", createdAt: 0, endpoints: null, routes: [] }
}

function snapshot(version: number): Snapshot {
  return {
    version,
    models: new Map(),
    plans: new Map(),
    upstreams: new Map(),
    drainMs: 0,
    corsOrigins: [],
    allowPrivateAddresses: false,
    keepRequestsMs: null,
    routes: () => [],
  }
}

const plan: Plan = { name: "team", concurrency: 0, models: ["*"], priceMultiplier: "1.5" }

test("a tariff has the model's price, the plan's factor and the version they stood in", () => {
  expect(tariffFor(snapshot(4), model("2"), plan)).toEqual({ price: { input: "2" }, multiplier: "1.5", version: 4 })
})

test("within a snapshot there is one tariff for a model and a plan, and it is no other's", () => {
  const [first, second] = [snapshot(1), snapshot(2)]
  const [cheap, dear] = [model("1"), model("2")]
  const other: Plan = { ...plan, priceMultiplier: "2" }
  const known = tariffFor(first, cheap, plan)
  expect(tariffFor(first, cheap, plan)).toBe(known)
  expect(tariffFor(first, dear, plan).price).toEqual({ input: "2" })
  expect(tariffFor(first, cheap, other).multiplier).toBe("2")
  expect(tariffFor(second, cheap, plan).version).toBe(2)
  expect(tariffFor(first, cheap, plan)).toBe(known)
})
