import type { VideoVendor } from "../../core/video-vendor.ts"
import { dashscope } from "./dashscope.ts"
import { fal } from "./fal.ts"
import { gemini } from "./gemini.ts"
import { kling } from "./kling.ts"
import { minimax } from "./minimax.ts"
import { openaiVideos } from "./openai-videos.ts"
import { replicate } from "./replicate.ts"
import { runway } from "./runway.ts"
import { vidu } from "./vidu.ts"
import { volcengineArk } from "./volcengine-ark.ts"
import { xai } from "./xai.ts"
import { zhipu } from "./zhipu.ts"

/** Vendors of videos, by the name of their preset. */
// biome-ignore format: one vendor a line
export const videoVendors: ReadonlyMap<string, VideoVendor> = new Map(
  [
    kling,
    volcengineArk,
    dashscope,
    gemini,
    runway,
    minimax,
    xai,
    vidu,
    fal,
    replicate,
    zhipu,
    openaiVideos,
  ].map((vendor) => [vendor.vendor, vendor]),
)
