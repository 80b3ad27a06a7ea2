import { describe, expect, test } from "bun:test"
import { readRerankUsage } from "./rerank-usage.ts"

const read = (input: number, output = 0) => ({
  input,
  cachedInput: 0,
  cacheWrite: 0,
  audioInput: 0,
  output,
  reasoning: 0,
  audioOutput: 0,
})

describe("what a reranking took", () => {
  test("search units", () => {
    const meta = { api_version: { version: "2" }, billed_units: { search_units: 3 } }
    expect(readRerankUsage(undefined, meta)).toEqual({ measured: { searchUnits: 3 }, invalid: false })
  })

  test("tokens, in total or as read", () => {
    expect(readRerankUsage({ total_tokens: 26 }, undefined)).toEqual({ measured: { tokens: read(26) }, invalid: false })
    expect(readRerankUsage({ total_tokens: 9, prompt_tokens: 7 }, null).measured).toEqual({ tokens: read(7) })
  })

  test("tokens in the meta, billed ones first, beside search units", () => {
    const tokens = { input_tokens: 50, output_tokens: 2 }
    expect(readRerankUsage(undefined, { tokens }).measured).toEqual({ tokens: read(50, 2) })
    const billed_units = { input_tokens: 40, search_units: 1 }
    expect(readRerankUsage(null, { tokens, billed_units })).toEqual({
      measured: { tokens: read(40), searchUnits: 1 },
      invalid: false,
    })
  })

  test("an explicit zero is zero", () => {
    expect(readRerankUsage({ total_tokens: 0 }, { billed_units: { search_units: 0 } })).toEqual({
      measured: { tokens: read(0), searchUnits: 0 },
      invalid: false,
    })
  })

  test("nothing where nothing is said", () => {
    for (const meta of [undefined, null, {}, { billed_units: null }, { billed_units: { search_units: null } }])
      expect(readRerankUsage(undefined, meta)).toEqual({ measured: {}, invalid: false })
  })
})

describe("odd numbers are not charged by", () => {
  test.each(["1", -1, 1.5, 1e300, {}, [[1]], true])("search_units: %j", (search_units) => {
    expect(readRerankUsage(undefined, { billed_units: { search_units } })).toEqual({ measured: {}, invalid: true })
  })

  test.each(["1", -1, 1.5, 1e300, {}, true])("tokens: %j", (tokens) => {
    expect(readRerankUsage({ total_tokens: tokens }, undefined)).toEqual({ measured: {}, invalid: true })
    expect(readRerankUsage(undefined, { tokens: { input_tokens: tokens } })).toEqual({ measured: {}, invalid: true })
  })

  test("what is right beside them counts", () => {
    expect(readRerankUsage({ total_tokens: -5 }, { billed_units: { search_units: 2 } })).toEqual({
      measured: { searchUnits: 2 },
      invalid: true,
    })
  })
})
