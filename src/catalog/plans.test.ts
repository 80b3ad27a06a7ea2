import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import type { Plan, Snapshot } from "../core/catalog.ts"
import type { Principal } from "../core/principal.ts"
import { concurrencyLimit, matches, planAllows, planOf } from "./plans.ts"

const plan: Plan = { name: "team", concurrency: 5, models: ["gpt-*", "flux"], priceMultiplier: "1" }
const caller: Principal = {
  keyId: "k",
  keyName: "ci",
  accountId: "a",
  accountName: "acme",
  planName: "team",
  concurrency: null,
  suspended: false,
}
const snapshot: Snapshot = {
  version: 1,
  models: new Map(),
  plans: new Map([["team", plan]]),
  upstreams: new Map(),
  drainMs: 0,
  corsOrigins: [],
  allowPrivateAddresses: false,
  keepRequestsMs: null,
  routes: () => [],
}

describe("patterns of model names", () => {
  test.each([
    ["*", "anything"],
    ["*", ""],
    ["gpt-5", "gpt-5"],
    ["gpt-*", "gpt-5"],
    ["gpt-*", "gpt-"],
    ["*-mini", "gpt-5-mini"],
    ["*gpt*", "gpt"],
    ["a*c", "abc"],
    ["a*c", "ac"],
    ["a*b*c", "a-b-b-c"],
    ["a**c", "abc"],
    ["**", ""],
    ["*a*a*", "aa"],
    ["ab*bc", "abbc"],
    ["a.c", "a.c"],
    ["[a]*", "[a]b"],
  ])("%s takes %s", (pattern, name) => {
    expect(matches(pattern, name)).toBe(true)
  })

  test.each([
    ["gpt-5", "gpt-50"],
    ["gpt-5", "GPT-5"],
    ["gpt-*", "xgpt-5"],
    ["*-mini", "gpt-mini-5"],
    ["", "a"],
    ["a*a", "a"],
    ["ab*bc", "abc"],
    ["a*b*c", "a-c"],
    ["a*b*c", "acb"],
    ["*a*a*", "a"],
    ["a.c", "abc"],
    ["[a]*", "ab"],
    ["*b*c", "cb"],
  ])("%s does not take %s", (pattern, name) => {
    expect(matches(pattern, name)).toBe(false)
  })

  test("agrees with the same pattern as a regular expression", () => {
    const text = (letters: readonly string[], maxLength: number) =>
      fc.string({ unit: fc.constantFrom(...letters), maxLength })
    fc.assert(
      fc.property(text(["a", "b", "*"], 6), text(["a", "b"], 8), (pattern, name) => {
        const expression = new RegExp(`^${pattern.replaceAll("*", ".*")}$`)
        expect(matches(pattern, name)).toBe(expression.test(name))
      }),
      { numRuns: 2000 },
    )
  })

  test("a pattern made to be slow is not: this would take a backtracking matcher longer than anyone lives", () => {
    expect(matches(`${"a*".repeat(5000)}b`, "a".repeat(50_000))).toBe(false)
    expect(matches(`${"*a".repeat(5000)}*b*`, "a".repeat(50_000))).toBe(false)
  })
})

describe("what an account may use", () => {
  test("any of the plan's patterns is enough", () => {
    expect(planAllows(plan, "gpt-5")).toBe(true)
    expect(planAllows(plan, "flux")).toBe(true)
    expect(planAllows(plan, "flux-2")).toBe(false)
    expect(planAllows({ ...plan, models: [] }, "gpt-5")).toBe(false)
  })

  test("a plan that is gone allows nothing", () => {
    expect(planOf(snapshot, caller)).toBe(plan)
    expect(planAllows(planOf(snapshot, { ...caller, planName: "gone" }), "gpt-5")).toBe(false)
  })
})

describe("whose concurrency limit", () => {
  test("the plan's, unless the account has its own; 0 of its own is unlimited", () => {
    expect(concurrencyLimit(plan, caller)).toBe(5)
    expect(concurrencyLimit(plan, { ...caller, concurrency: 2 })).toBe(2)
    expect(concurrencyLimit(plan, { ...caller, concurrency: 0 })).toBe(0)
  })
})
