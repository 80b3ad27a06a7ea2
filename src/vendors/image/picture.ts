import type { ImageResult } from "../../core/image-vendor.ts"
import { isAddress, type Value } from "../reply.ts"

/** A picture that is an address or a base64 data URI; null for anything else. */
export function picture(value: Value): ImageResult | null {
  if (typeof value !== "string") return null
  if (isAddress(value)) return { url: value }
  const data = /^data:image\/[^,]*;base64,([A-Za-z0-9+/=]+)$/.exec(value)
  return data === null ? null : { base64: data[1]! }
}

/** The verdict of a job that its vendor calls done. */
export function finished(values: readonly Value[], otherwise = "the vendor finished the job without an image") {
  const images = values.map(picture).filter((image) => image !== null)
  if (images.length === 0) return { kind: "failed", reason: otherwise } as const
  return { kind: "succeeded", images } as const
}
