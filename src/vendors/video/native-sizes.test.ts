import { expect, test } from "bun:test"
import { fitFrame } from "./asking.ts"
import { ruleFor } from "./native-sizes.ts"

const rule = { ratios: ["16:9", "4:3", "3:4", "1:1"], tiers: { "480p": 480, "720p": 720 } }
const native = { "480p": ["752x560"], "720p": ["960x960", "1112x834"], "1080p": ["1440x1440"] }

function frame(width: number, height: number) {
  return fitFrame({ width, height }, ruleFor({ width, height }, rule, native))
}

test("a vendor's own size has the resolution it is listed under, lying or upright", () => {
  expect(frame(752, 560)).toEqual({ ratio: "4:3", tier: "480p" })
  expect(frame(960, 960)).toEqual({ ratio: "1:1", tier: "720p" })
  expect(frame(834, 1112)).toEqual({ ratio: "3:4", tier: "720p" })
})

test("other sizes go by their short side", () => {
  expect(frame(1280, 720)).toEqual({ ratio: "16:9", tier: "720p" })
  expect(() => frame(961, 961)).toThrow("480 (480p), 720 (720p)")
})

test("a size of a resolution that the model does not make is refused with all that it makes", () => {
  expect(() => frame(1440, 1440)).toThrow("480 (480p), 720 (720p)")
})
