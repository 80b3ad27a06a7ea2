import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { type Measured, nothingMeasured } from "./measured.ts"
import { readMessagesUsage } from "./messages-usage.ts"
import { chargeFor, type Price, type PriceList, type PriceUnit, priceUnits, type Tariff, unitsOf } from "./price.ts"
import { readChatUsage, type TokenUsage, type UsageReading } from "./usage.ts"

function tariff(price: Price, multiplier = "1"): Tariff {
  return { price, multiplier, version: 7 }
}

const none: TokenUsage = {
  input: 0,
  cachedInput: 0,
  cacheWrite: 0,
  audioInput: 0,
  output: 0,
  reasoning: 0,
  audioOutput: 0,
}

function tokens(counts: Partial<TokenUsage>): Measured {
  return { ...nothingMeasured, tokens: { ...none, ...counts } }
}

function nanos(price: Price, measured: Measured, multiplier = "1"): bigint {
  return chargeFor(tariff(price, multiplier), measured).amount
}

describe("one rounding, half up", () => {
  test.each([
    // A price of 0.0005 dollars per million tokens is half a nano-dollar for each.
    [{ input: "0.0005" }, tokens({ input: 1 }), 1n],
    [{ input: "0.0005" }, tokens({ input: 2 }), 1n],
    [{ input: "0.0005" }, tokens({ input: 3 }), 2n],
    [{ input: "0.000499999999999999999999999999" }, tokens({ input: 1 }), 0n],
    [{ input: "0.0005", output: "0.0005" }, tokens({ input: 1, output: 1 }), 1n],
    [{ input: "0.0004", output: "0.0004" }, tokens({ input: 1, output: 1 }), 1n],
    [{ request: "0.0000000004" }, nothingMeasured, 0n],
    [{ request: "0.0000000005" }, nothingMeasured, 1n],
  ])("%#: %p", (price, measured, amount) => {
    expect(nanos(price, measured)).toBe(amount)
  })

  test("the multiplier comes before it", () => {
    expect(nanos({ input: "0.001" }, tokens({ input: 1 }), "0.5")).toBe(1n)
    expect(nanos({ input: "0.001" }, tokens({ input: 1 }), "0.499999999999999999999999999999")).toBe(0n)
    expect(nanos({ input: "0.0004" }, tokens({ input: 1 }), "10")).toBe(4n)
    expect(nanos({ request: "1" }, nothingMeasured, "0")).toBe(0n)
  })
})

describe("each unit counts its own", () => {
  const everything: Measured = {
    ...nothingMeasured,
    images: 3,
    microseconds: 1_500_001,
    characters: 40,
    searchUnits: null,
  }
  test.each<[Price, bigint]>([
    [{ image: "0.04" }, 120_000_000n],
    [{ second: "0.006" }, 9_000_006n],
    [{ character: "0.000015" }, 600_000n],
    [{ request: "0.5" }, 500_000_000n],
    [{ image: "0.04", request: "0.5" }, 620_000_000n],
    [{ input: "1.25" }, 0n],
  ])("%p", (price, amount) => {
    expect(nanos(price, everything)).toBe(amount)
  })

  test("a call with search units costs the request price for each of them, and nothing for none", () => {
    expect(nanos({ request: "0.002" }, { ...nothingMeasured, searchUnits: 3 })).toBe(6_000_000n)
    expect(nanos({ request: "0.002" }, { ...nothingMeasured, searchUnits: 0 })).toBe(0n)
  })
})

describe("every token is priced once", () => {
  const full = { input: "1", cached_input: "10", cache_write: "100", audio_input: "1000" }
  const usage = tokens({ input: 1000, cachedInput: 200, cacheWrite: 300, audioInput: 400 })
  test.each<[PriceList, bigint]>([
    [full, (100n + 2000n + 30_000n + 400_000n) * 1000n],
    [{ ...full, audio_input: "1" }, (500n + 2000n + 30_000n) * 1000n],
    [{ input: "1" }, 1_000_000n],
    [{ input: "1", cached_input: "10" }, (800n + 2000n) * 1000n],
    [{ input: "1", cache_write: "100" }, (700n + 30_000n) * 1000n],
    [{ input: "1", audio_input: "1000" }, (600n + 400_000n) * 1000n],
    [{ cached_input: "10" }, 2_000_000n],
    [{ output: "5" }, 0n],
  ])("%p", (price, amount) => {
    expect(nanos(price, usage)).toBe(amount)
  })

  test("reasoning is output, and so is audio without a price of its own", () => {
    const answer = tokens({ output: 100, reasoning: 60, audioOutput: 30 })
    expect(nanos({ output: "2" }, answer)).toBe(200_000n)
    expect(nanos({ output: "2", audio_output: "20" }, answer)).toBe(740_000n)
  })

  test("parts that are more than their whole count as the whole", () => {
    const heard = tokens({ input: 100, cachedInput: 80, audioInput: 90, output: 5, audioOutput: 9 })
    expect(nanos({ input: "1", cached_input: "10", audio_input: "1000" }, heard)).toBe((800n + 20_000n) * 1000n)
    expect(nanos({ output: "1", audio_output: "2" }, heard)).toBe(10_000n)
    expect(nanos({ input: "1", cached_input: "10" }, tokens({ input: 5, cachedInput: 9 }))).toBe(50_000n)
  })

  test("the same usage costs the same whether cached tokens are told inside the prompt or beside it", () => {
    const inside = readChatUsage({
      prompt_tokens: 1000,
      completion_tokens: 50,
      prompt_tokens_details: { cached_tokens: 700, cache_write_tokens: 200 },
    })
    const beside = readMessagesUsage({
      input_tokens: 100,
      cache_read_input_tokens: 700,
      cache_creation_input_tokens: 200,
      output_tokens: 50,
    })
    const price = { input: "3", cached_input: "0.3", cache_write: "3.75", output: "15" }
    const charged = [inside, beside].map((reading: UsageReading) => {
      if (reading === null || reading === "invalid") throw new Error("no usage was read")
      return chargeFor(tariff(price), { ...nothingMeasured, tokens: reading })
    })
    expect(charged[0]).toEqual(charged[1]!)
    expect(charged[0]!.amount).toBe(300_000n + 210_000n + 750_000n + 750_000n)
  })
})

describe("tiers", () => {
  const long = { input: "1", output: "8", tiers: [{ aboveInput: 200_000, prices: { input: "2", output: "12" } }] }

  test("a longer context costs more, from the first token on, and only above the bound", () => {
    expect(nanos(long, tokens({ input: 200_000, output: 10 }))).toBe(200_080_000n)
    expect(nanos(long, tokens({ input: 200_001, output: 10 }))).toBe(400_122_000n)
  })

  test("units that a tier does not name keep their price, and cached tokens count towards the bound", () => {
    const price = { input: "1", cached_input: "0.1", tiers: [{ aboveInput: 100, prices: { input: "2" } }] }
    expect(nanos(price, tokens({ input: 110, cachedInput: 100 }))).toBe(20_000n + 10_000n)
  })

  test("a tier can price apart what had no price of its own", () => {
    const price = { input: "1", tiers: [{ aboveInput: 100, prices: { cached_input: "0.5" } }] }
    expect(nanos(price, tokens({ input: 100, cachedInput: 50 }))).toBe(100_000n)
    expect(nanos(price, tokens({ input: 200, cachedInput: 50 }))).toBe(150_000n + 25_000n)
  })

  const pictures: PriceList = {
    image: "0.04",
    tiers: [
      { size: "1024x1536", prices: { image: "0.06" } },
      { quality: "high", prices: { image: "0.17" } },
      { size: "1024x1536", quality: "high", prices: { image: "0.25" } },
    ],
  }
  test.each([
    [null, null, "0.04"],
    ["512x512", "low", "0.04"],
    ["1024x1536", "low", "0.06"],
    [" 1024X1536 ", null, "0.06"],
    ["512x512", "HIGH", "0.17"],
    ["1024x1536", "High", "0.25"],
  ])(
    "size %p and quality %p cost %s: every condition must be met, and the last tier that fits wins",
    (size, quality, each) => {
      const { price } = chargeFor(tariff(pictures), { ...nothingMeasured, images: 2, size, quality })
      expect(price.units).toEqual({ image: each })
    },
  )

  test("without tokens no bound is passed", () => {
    expect(nanos({ request: "1", tiers: [{ aboveInput: 1, prices: { request: "2" } }] }, nothingMeasured)).toBe(
      1_000_000_000n,
    )
  })
})

describe("the price that a charge names", () => {
  test("has the version, the multiplier and the units that were counted, after tiers", () => {
    const list: PriceList = {
      input: "1",
      cached_input: "0",
      output: "8",
      image: "1",
      tiers: [{ aboveInput: 5, prices: { input: "2.50" } }],
    }
    expect(chargeFor(tariff(list, "1.5"), tokens({ input: 10, cachedInput: 4 }))).toEqual({
      amount: 22_500n,
      price: { version: 7, multiplier: "1.5", units: { input: "2.50", cached_input: "0" } },
    })
  })

  test("of a free model has none", () => {
    expect(chargeFor(tariff("free", "3"), tokens({ input: 10 }))).toEqual({
      amount: 0n,
      price: { version: 7, multiplier: "3", units: {} },
    })
  })
})

test("a charge that the books cannot hold is refused by its size, the largest that they can is not", () => {
  const largest = { request: "9223372036.854775807" }
  expect(nanos(largest, nothingMeasured)).toBe(2n ** 63n - 1n)
  expect(() => nanos({ request: "9223372036.8547758075" }, nothingMeasured)).toThrow(RangeError)
  expect(() => nanos(largest, nothingMeasured, "2")).toThrow("a charge of 18446744073709551614 billionths of a dollar")
})

test("the units of a price include those of its tiers", () => {
  expect([...unitsOf("free")]).toEqual([])
  const tiers = [{ size: "big", prices: { image: "2", request: "1" } }]
  expect([...unitsOf({ input: "1", image: "1", tiers })].toSorted()).toEqual(["image", "input", "request"])
})

interface Fraction {
  readonly over: bigint
  readonly under: bigint
}

function fraction(text: string): Fraction {
  const [whole = "", rest = ""] = text.split(".")
  return { over: BigInt(whole + rest), under: BigInt(`1${"0".repeat(rest.length)}`) }
}
const times = (a: Fraction, b: Fraction): Fraction => ({ over: a.over * b.over, under: a.under * b.under })
const plus = (a: Fraction, b: Fraction): Fraction => ({
  over: a.over * b.under + b.over * a.under,
  under: a.under * b.under,
})

/** The rules told another way: every token is put on a pile, every pile has a price or costs nothing, fractions stay fractions. */
function oracle({ price, multiplier }: Tariff, measured: Measured): bigint {
  if (price === "free") return 0n
  const { tiers = [], ...prices } = price
  const same = (wanted: string | undefined, word: string | null) =>
    wanted === undefined || wanted.toUpperCase() === word?.trim().toUpperCase()
  for (const { aboveInput = -1, size, quality, prices: others } of tiers) {
    const long = (measured.tokens?.input ?? 0) > aboveInput
    if (long && same(size, measured.size) && same(quality, measured.quality)) Object.assign(prices, others)
  }
  let dollars = fraction("0")
  const pay = (count: number, each: Fraction, ...candidates: readonly PriceUnit[]): void => {
    const unit = candidates.find((candidate) => prices[candidate] !== undefined)
    const text = unit === undefined ? undefined : prices[unit]
    if (text !== undefined) dollars = plus(dollars, times(times(fraction(String(count)), each), fraction(text)))
  }
  const one = fraction("1")
  const millionth = fraction("0.000001")
  const share = (whole: number, parts: readonly (readonly [number, PriceUnit])[], rest: PriceUnit): void => {
    let left = whole
    for (const [count, unit] of parts) {
      const taken = Math.min(count, left)
      left -= taken
      pay(taken, millionth, unit, rest)
    }
    pay(left, millionth, rest)
  }
  const { input, cachedInput, cacheWrite, audioInput, output, audioOutput } = measured.tokens ?? none
  share(
    input,
    [
      [cachedInput, "cached_input"],
      [cacheWrite, "cache_write"],
      [audioInput, "audio_input"],
    ],
    "input",
  )
  share(output, [[audioOutput, "audio_output"]], "output")
  pay(measured.images ?? 0, one, "image")
  pay(measured.microseconds ?? 0, millionth, "second")
  pay(measured.characters ?? 0, one, "character")
  pay(measured.searchUnits ?? 1, one, "request")
  const { over, under } = times(times(dollars, fraction(multiplier)), fraction("1000000000"))
  const rounded = over / under
  return (over % under) * 2n >= under ? rounded + 1n : rounded
}

const decimal = (mostWhole: bigint) =>
  fc
    .tuple(fc.bigInt({ min: 0n, max: mostWhole }), fc.stringMatching(/^[0-9]{0,30}$/))
    .map(([whole, rest]) => (rest === "" ? String(whole) : `${whole}.${rest}`))
const amount = fc.oneof(decimal(0n), decimal(100n), decimal(8_999_999_999n), fc.constantFrom("0", "0.0005", "0.5"))
const unitPrices = fc.dictionary(fc.constantFrom(...priceUnits), amount, { noNullPrototype: true })
const bound = fc.integer({ min: 1, max: 20 })
const word = fc.constantFrom("low", "HIGH", "1024x1536")
const tier = fc
  .record({ aboveInput: bound, size: word, quality: word }, { requiredKeys: [] })
  .chain((conditions) => unitPrices.map((prices) => ({ ...conditions, prices })))
const prices = fc
  .tuple(unitPrices, fc.option(fc.array(tier, { maxLength: 4 })))
  .map(([units, tiers]): Price => (tiers === null ? units : { ...units, tiers }))
const count = fc.oneof(fc.nat(30), fc.nat(1_000_000_000))
const counts = fc.record({
  input: count,
  cachedInput: count,
  cacheWrite: count,
  audioInput: count,
  output: count,
  reasoning: count,
  audioOutput: count,
})
const measurements: fc.Arbitrary<Measured> = fc.record({
  tokens: fc.option(counts),
  images: fc.option(fc.nat(10_000)),
  microseconds: fc.option(fc.nat(2 ** 31 - 1)),
  characters: fc.option(count),
  searchUnits: fc.option(fc.nat(1_000_000)),
  size: fc.option(fc.constantFrom("LOW", " 1024X1536", "auto")),
  quality: fc.option(fc.constantFrom("high ", "low", "")),
})

test("any price and any quantity give what exact fractions give, rounded once", () => {
  fc.assert(
    fc.property(prices, fc.oneof(fc.constant("1"), decimal(3n)), measurements, (price, multiplier, measured) => {
      const asked = tariff(price, multiplier)
      const expected = oracle(asked, measured)
      if (expected > 2n ** 63n - 1n) expect(() => chargeFor(asked, measured)).toThrow(RangeError)
      else expect([chargeFor(asked, measured).amount, chargeFor(asked, measured).amount]).toEqual([expected, expected])
    }),
    { numRuns: 3000 },
  )
})
