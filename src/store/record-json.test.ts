import { expect, test } from "bun:test"
import fc from "fast-check"
import { anyMeasured, requestRecord } from "../../test/store/records.ts"
import { endpoints } from "../core/endpoints.ts"
import { nothingMeasured } from "../core/measured.ts"
import { readAttempts, readMeasured, readPrice, writeAttempts, writeMeasured, writePrice } from "./record-json.ts"

const upstream = fc.option(fc.string(), { nil: null })

test("whatever was measured is read back as it was, for ever", () => {
  const any = fc.record({
    model: fc.string(),
    upstream,
    endpoint: fc.constantFrom(...endpoints),
    measured: anyMeasured,
    secondsSource: fc.constantFrom(undefined, "reported", "probed", "sent"),
  })
  fc.assert(
    fc.property(any, (written) => {
      expect(readMeasured(writeMeasured(written))).toEqual(written)
    }),
  )
})

test("what was not measured is not written; seconds are an exact decimal", () => {
  const line = { model: "m", upstream: null, endpoint: "speech" } as const
  const json = (measured: object) =>
    JSON.parse(writeMeasured({ ...line, measured: { ...nothingMeasured, ...measured } }))
  expect(json({})).toEqual({ model: "m", endpoint: "speech" })
  for (const [microseconds, seconds] of [
    [0, "0"],
    [1, "0.000001"],
    [1_500_000, "1.5"],
    [120_000_000, "120"],
    [10_000_000_000_000, "10000000"],
  ] as const) {
    expect(json({ microseconds })).toEqual({ model: "m", endpoint: "speech", seconds })
  }
  const sent = { ...line, measured: { ...nothingMeasured, microseconds: 5_000_000 }, secondsSource: "sent" } as const
  expect(JSON.parse(writeMeasured(sent))).toEqual({
    ...line,
    upstream: undefined,
    seconds: "5",
    seconds_source: "sent",
  })
  expect(json({ images: 0, characters: 3, searchUnits: 2, size: "1024x1024", quality: "high" })).toEqual({
    model: "m",
    endpoint: "speech",
    images: 0,
    characters: 3,
    search_units: 2,
    size: "1024x1024",
    quality: "high",
  })
})

test("an upstream's explicit zero is not the same as nothing said", () => {
  const tokens = { input: 0, cachedInput: 0, cacheWrite: 0, audioInput: 0, output: 0, reasoning: 0, audioOutput: 0 }
  const zero = { model: "m", upstream: "u", endpoint: "chat", measured: { ...nothingMeasured, tokens } } as const
  expect(readMeasured(writeMeasured(zero)).measured.tokens).toEqual(tokens)
  expect(readMeasured(writeMeasured({ ...zero, measured: nothingMeasured })).measured.tokens).toBeNull()
})

test("price and attempts are read back as they were", () => {
  const { price, attempts } = requestRecord("a")
  expect(readPrice(writePrice(price!))).toEqual(price!)
  expect(readAttempts(writeAttempts(attempts))).toEqual(attempts)
  expect(readAttempts(writeAttempts([]))).toEqual([])
})
