import { describe, expect, test } from "bun:test"
import { GatewayError } from "../../core/errors.ts"
import { fitFrame, imageText, needsImage, passedOn } from "./asking.ts"

test("the caller's fields go along, but for the gateway's own and those held back", () => {
  const extra = { seed: 7, nothing: null, model: "x", prompt: "x", n: 4, callback_url: "https://elsewhere.test" }
  expect(passedOn(extra, ["callback_url"])).toEqual({ seed: 7, nothing: null })
})

test("a picture is its address, or all of it as a data URI", () => {
  expect(imageText({ url: "https://pictures.test/fox.png" })).toBe("https://pictures.test/fox.png")
  expect(imageText({ mediaType: "image/jpeg", base64: "/9j/" })).toBe("data:image/jpeg;base64,/9j/")
})

test("a model that needs a picture refuses to go without", () => {
  expect(() => needsImage(null)).toThrow("image_url: this model makes videos from a picture only; give it one")
  expect(() => needsImage({ url: "https://pictures.test/fox.png" })).not.toThrow()
})

describe("sizes in a vendor's words", () => {
  const rule = { ratios: ["16:9", "9:16", "1:1"], tiers: { "540p": 540, "720p": 720, "1080p": 1080 } }

  test.each([
    [1280, 720, "16:9", "720p"],
    [720, 1280, "9:16", "720p"],
    [1366, 768, null, null],
    [1024, 576, "16:9", "720p"],
    [1920, 1088, "16:9", "1080p"],
    [1792, 1024, "16:9", "1080p"],
    [1024, 1024, "1:1", "1080p"],
    [432, 432, "1:1", "540p"],
    [430, 430, null, null],
    [2560, 1440, null, null],
    [1280, 800, null, null],
  ])("%ix%i is %p at %p", (width, height, ratio, tier) => {
    const fit = () => fitFrame({ width, height }, rule)
    if (ratio !== null && tier !== null) expect(fit()).toEqual({ ratio, tier })
    else expect(fit).toThrow(GatewayError)
  })

  test("where the shape is not the caller's to choose, the short side alone counts", () => {
    expect(fitFrame({ width: 1000, height: 720 }, { tiers: rule.tiers })).toEqual({ ratio: null, tier: "720p" })
  })

  test("a refusal is the caller's mistake and lists what is taken", () => {
    const refused = (taken: Parameters<typeof fitFrame>[1]) => {
      try {
        return fitFrame({ width: 300, height: 100 }, taken)
      } catch (error) {
        return error instanceof GatewayError ? `${error.code}: ${error.message}` : error
      }
    }
    expect(refused(rule)).toBe(
      "invalid_parameter: size: this model does not make 300x100; it takes sizes of the aspect ratios 16:9, 9:16, 1:1 whose short side is 540 (540p), 720 (720p), 1080 (1080p)",
    )
    expect(refused({ tiers: { "1080p": 1080 } })).toEndWith("it takes sizes whose short side is 1080 (1080p)")
  })
})
