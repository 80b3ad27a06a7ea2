import type { ImageVendor } from "../../core/image-vendor.ts"
import { bfl } from "./bfl.ts"
import { dashscope } from "./dashscope.ts"
import { fal } from "./fal.ts"
import { replicate } from "./replicate.ts"

/** Vendors whose images are jobs, by the name of their preset. */
export const imageVendors: ReadonlyMap<string, ImageVendor> = new Map(
  [dashscope, bfl, replicate, fal].map((vendor) => [vendor.vendor, vendor]),
)
