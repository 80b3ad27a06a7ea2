import { describe, expect, test } from "bun:test"
import { countImages, readDuration, readMediaUsage, traits } from "./media-usage.ts"

const noTokens = { cachedInput: 0, cacheWrite: 0, audioInput: 0, reasoning: 0, audioOutput: 0 }
const invalid = { measured: {}, invalid: true }
const nothing = { measured: {}, invalid: false }

describe("usage of images, speech and transcripts", () => {
  test("tokens, with those of sound apart", () => {
    const usage = {
      type: "tokens",
      input_tokens: 14,
      input_token_details: { text_tokens: 4, audio_tokens: 10 },
      output_tokens: 45,
      total_tokens: 59,
    }
    const tokens = { ...noTokens, input: 14, audioInput: 10, output: 45 }
    expect(readMediaUsage(usage)).toEqual({ measured: { tokens }, invalid: false })
  })

  test("seconds, rounded to millionths", () => {
    expect(readMediaUsage({ type: "duration", seconds: 9 })).toEqual({
      measured: { microseconds: 9_000_000 },
      invalid: false,
    })
    expect(readMediaUsage({ seconds: 521.5 }).measured).toEqual({ microseconds: 521_500_000 })
    expect(readMediaUsage({ type: "duration", seconds: 0 }).measured).toEqual({ microseconds: 0 })
    expect(readMediaUsage({ type: "duration", seconds: 0.1 + 0.2 }).measured).toEqual({ microseconds: 300_000 })
  })

  test("both, where a vendor says both", () => {
    expect(readMediaUsage({ input_tokens: 1, output_tokens: 2, seconds: 3 })).toEqual({
      measured: { tokens: { ...noTokens, input: 1, output: 2 }, microseconds: 3_000_000 },
      invalid: false,
    })
  })

  test("output and total tokens alone leave the rest to the input", () => {
    const { measured } = readMediaUsage({ generated_images: 1, output_tokens: 100, total_tokens: 130 })
    expect(measured).toEqual({ tokens: { ...noTokens, input: 30, output: 100 } })
  })

  test("a usage without a word about tokens or seconds says nothing", () => {
    for (const usage of [undefined, null, {}, { generated_images: 2 }]) expect(readMediaUsage(usage)).toEqual(nothing)
  })

  test.each([
    "12",
    7,
    [[]],
    { input_tokens: "5", output_tokens: 1 },
    { input_tokens: 1.5, output_tokens: 1 },
    { input_tokens: -1, output_tokens: 1 },
    { input_tokens: 1 },
    { output_tokens: 5 },
    { total_tokens: 1 },
    { output_tokens: 5, total_tokens: 4 },
    { input_tokens: 1e300, output_tokens: 1 },
    { type: "duration" },
    { type: "duration", seconds: null },
    { type: "duration", seconds: "9" },
    { type: "duration", seconds: -9 },
    { type: "duration", seconds: 1e12 },
    { seconds: {} },
  ])("%j is nothing to charge by", (usage) => expect(readMediaUsage(usage)).toEqual(invalid))
})

describe("the duration beside a transcript", () => {
  test.each([
    [8.47, 8_470_000],
    ["8.470000267028809", 8_470_000],
    ["0", 0],
    [0, 0],
  ])("%j", (duration, microseconds) =>
    expect(readDuration(duration)).toEqual({ measured: { microseconds }, invalid: false }),
  )

  test.each([
    "",
    " 8",
    "8s",
    "1e3",
    "-1",
    "+1",
    ".5",
    "5.",
    "0x10",
    "Infinity",
    "1:30",
    null,
    [[5]],
    true,
    "9".repeat(9),
    -0.1,
  ])("%j is none", (duration) => expect(readDuration(duration)).toEqual(invalid))
})

describe("pictures", () => {
  test("are the entries of an answer, less those the vendor does not count", () => {
    expect(countImages(3, undefined)).toEqual({ measured: { images: 3 }, invalid: false })
    expect(countImages(0, null)).toEqual({ measured: { images: 0 }, invalid: false })
    expect(countImages(3, { generated_images: 1 })).toEqual({ measured: { images: 1 }, invalid: false })
    expect(countImages(3, { generated_images: 0 })).toEqual({ measured: { images: 0 }, invalid: false })
  })

  test.each([4, -1, 1.5, "1", {}, 1e300])("generated_images: %j is no count of three entries", (generated_images) =>
    expect(countImages(3, { generated_images })).toEqual({ measured: { images: 3 }, invalid: true }),
  )

  test("more than an answer can have are a mistake", () => {
    expect(countImages(10_001, undefined)).toEqual(invalid)
  })

  test("have a size and a quality where these are words", () => {
    expect(traits("1024x1024", "high")).toEqual({ size: "1024x1024", quality: "high" })
    for (const odd of [undefined, null, "", 7, ["1024x1024"], "x".repeat(65)]) expect(traits(odd, odd)).toEqual({})
  })
})
