import { expect, test } from "bun:test"
import { fitSize, ratios, type SizeRule } from "./size-rule.ts"

const rules = {
  list: { kind: "list", sizes: ["1664x928", "1328x1328"] },
  steps: { kind: "pixels", sides: [256, 1440], multipleOf: 32 },
  area: { kind: "pixels", sides: [64], squares: [1280, 1440], steepest: 4 },
  ratios: ratios("1:1 16:9 9:16"),
  range: { kind: "ratio-range", tallest: "3:7", widest: "7:3" },
} as const satisfies Record<string, SizeRule>

const areaText =
  "sides of 64 pixels or more, as many pixels in all as from 1280x1280 to 1440x1440, aspect ratios from 1:4 to 4:1"

// biome-ignore format: a table
test.each([
  ["list", 1664, 928, { kind: "pixels", width: 1664, height: 928 }],
  ["steps", 256, 1440, { kind: "pixels", width: 256, height: 1440 }],
  ["area", 1280, 1280, { kind: "pixels", width: 1280, height: 1280 }],
  ["area", 768, 2700, { kind: "pixels", width: 768, height: 2700 }],
  ["ratios", 1024, 1024, { kind: "ratio", ratio: "1:1" }],
  ["ratios", 1024, 1792, { kind: "ratio", ratio: "9:16" }],
  ["range", 1024, 768, { kind: "ratio", ratio: "4:3" }],
  ["range", 700, 300, { kind: "ratio", ratio: "7:3" }],
] as const)("a rule by %s makes %ix%i", (rule, width, height, expected) => {
  expect(fitSize({ width, height }, rules[rule])).toEqual(expected)
})

// biome-ignore format: a table
test.each([
  ["list", 928, 1664, "1664x928, 1328x1328"],
  ["steps", 224, 512, "sides from 256 to 1440 pixels, sides in multiples of 32"],
  ["steps", 512, 1472, "sides from 256 to 1440 pixels, sides in multiples of 32"],
  ["steps", 1000, 1000, "sides from 256 to 1440 pixels, sides in multiples of 32"],
  ["area", 1024, 1024, areaText],
  ["area", 2048, 2048, areaText],
  ["area", 3000, 600, areaText],
  ["ratios", 1024, 1536, "sizes of the aspect ratios 1:1, 16:9, 9:16"],
  ["range", 1024, 256, "sizes of the aspect ratios from 3:7 to 7:3"],
  ["range", 256, 1024, "sizes of the aspect ratios from 3:7 to 7:3"],
] as const)("a rule by %s refuses %ix%i and says what it takes", (rule, width, height, takes) => {
  expect(() => fitSize({ width, height }, rules[rule])).toThrow(`size: this model does not make ${width}x${height}; it takes ${takes}`)
})
