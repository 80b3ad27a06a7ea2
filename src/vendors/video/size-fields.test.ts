import { expect, test } from "bun:test"
import { anySize, ratios } from "../size-rule.ts"
import { seconds } from "./duration-rule.ts"
import { anyFrame, fitLength, frames, type SizeFields, sizeFields } from "./size-fields.ts"

const rules = {
  both: frames("720p 4k", "16:9 1:1"),
  resolutions: frames("512P 768P"),
  shapes: ratios("16:9 1:1"),
  pixels: anySize,
  unknown: anyFrame,
} as const satisfies Record<string, SizeFields>

// biome-ignore format: a table
test.each([
  ["both", 1280, 720, { aspect_ratio: "16:9", resolution: "720p" }],
  ["both", 2160, 2160, { aspect_ratio: "1:1", resolution: "4k" }],
  ["resolutions", 768, 1366, { resolution: "768P" }],
  ["shapes", 999, 1000, { aspect_ratio: "1:1" }],
  ["pixels", 999, 1000, { size: "999x1000" }],
  ["unknown", 2560, 1440, { aspect_ratio: "16:9", resolution: "2k" }],
  ["unknown", 480, 854, { aspect_ratio: "9:16", resolution: "480p" }],
] as const)("a model that takes %s is told of %ix%i in its own fields", (rule, width, height, fields) => {
  expect(sizeFields({ width, height }, rules[rule])).toStrictEqual(fields)
})

test("where the caller says nothing, nothing is said", () => {
  for (const rule of [...Object.values(rules), null]) expect(sizeFields(null, rule)).toStrictEqual({})
})

test("what a model cannot be told is refused, not left out", () => {
  const size = { width: 1024, height: 768 }
  expect(() => sizeFields(size, rules.both)).toThrow("size: this model does not make 1024x768; it takes")
  expect(() => sizeFields(size, null)).toThrow("size: this model decides on the size itself; leave it out")
  expect(() => fitLength(5, null)).toThrow("duration: this model decides on the length itself; leave it out")
})

test("a model without lengths is asked for none, another for its own", () => {
  expect(fitLength(null, null)).toBeNull()
  expect(fitLength(null, seconds([6, 10], 6))).toBe(6)
  expect(fitLength(10, seconds([6, 10], 6))).toBe(10)
})
