import type { Route } from "../core/catalog.ts"
import { GatewayError } from "../core/errors.ts"
import type { VideoAsk, VideoImage } from "../core/video-vendor.ts"
import { videoVendors } from "../vendors/video/registry.ts"
import type { VideoRequest } from "./ask.ts"

/** Stands in for the picture until it is known which form the vendor gets it in. */
const somePicture: VideoImage = { mediaType: "image/png", base64: "" }

/** A route that can make what was asked, and the length it would be asked for. */
export interface Offer {
  readonly route: Route
  readonly seconds: number | null
}

/** The routes that can make what was asked; none of them: why the first one cannot. */
export function offersFor(
  wanted: VideoRequest,
  routes: readonly Route[],
): { readonly offers: readonly Offer[]; readonly refusal: GatewayError | null } {
  const offers: Offer[] = []
  let refusal: GatewayError | null = null
  for (const route of routes) {
    try {
      offers.push({ route, seconds: secondsOf(wanted, route) })
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      refusal ??= error
    }
  }
  return { offers, refusal }
}

function secondsOf(wanted: VideoRequest, { upstream, upstreamModel }: Route): number | null {
  const vendor = videoVendors.get(upstream.vendor.name)!
  const context = { baseUrl: upstream.baseUrl, upstreamModel, settings: upstream.settings, jobId: "" }
  const image = wanted.image === null ? null : somePicture
  return vendor.submit(askWith(wanted, image), { ...context, withImage: image !== null }).seconds
}

export function askWith({ prompt, size, duration, extra }: VideoRequest, image: VideoImage | null): VideoAsk {
  return { prompt, size, duration, image, extra }
}
