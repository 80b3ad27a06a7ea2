import { type Endpoint, endpoints as known } from "../core/endpoints.ts"
import { baseUnitsOf, type Price, type PriceUnit } from "../core/price.ts"
import type { VendorPreset } from "../core/vendor.ts"
import { videoVendors } from "./video/registry.ts"

/** Endpoints that a bridge can serve from another dialect's path. */
const bridges: Readonly<Partial<Record<Endpoint, readonly Endpoint[]>>> = {
  chat: ["messages"],
  messages: ["chat"],
  responses: ["chat"],
}

const images = ["image_generations", "image_edits", "image_variations"] as const
const audio = ["transcriptions", "translations"] as const
const written = ["chat", "responses", "messages", ...audio, ...images, "speech"] as const
const tokens = [...written, "embeddings", "rerank"] as const

/** Where a unit can be measured; null: anywhere. Embeddings and rerank write no tokens. */
const measuredAt: Readonly<Record<PriceUnit, readonly Endpoint[] | null>> = {
  input: tokens,
  cached_input: tokens,
  cache_write: tokens,
  audio_input: tokens,
  output: written,
  audio_output: written,
  image: images,
  second: ["video", ...audio],
  character: ["speech"],
  request: null,
}

/** Whether a vendor has an endpoint of its own. Every vendor of videos speaks its own protocol, so a path alone does not make one. */
function has(preset: VendorPreset, endpoint: Endpoint): boolean {
  return preset.paths[endpoint] !== undefined && (endpoint !== "video" || videoVendors.has(preset.name))
}

/** Whether a vendor can serve an endpoint, by its own path or over a bridge. */
export function isServed(preset: VendorPreset, endpoint: Endpoint): boolean {
  const ways: readonly Endpoint[] = [endpoint, ...(bridges[endpoint] ?? [])]
  return ways.some((way) => has(preset, way))
}

/** Where something that the price names can be measured, or null: anywhere. A tier may not fit, so tiers do not count. */
function endpointsForPrice(price: Price): readonly Endpoint[] | null {
  if (price === "free") return null
  const wanted = new Set<Endpoint>()
  for (const unit of baseUnitsOf(price)) {
    const places = measuredAt[unit]
    if (places === null) return null
    for (const place of places) wanted.add(place)
  }
  return [...wanted]
}

/** Whether an answer of the endpoint can be charged by the price; one that cannot would be free by accident. */
export function isPriced(price: Price, endpoint: Endpoint): boolean {
  return endpointsForPrice(price)?.includes(endpoint) ?? true
}

/** Why a model must not be offered at an endpoint, as a sentence for the operator; null where it may. */
export function endpointProblem(price: Price, endpoint: Endpoint): string | null {
  const places = endpointsForPrice(price)
  if (places === null || places.includes(endpoint)) return null
  const units = baseUnitsOf(price)
  const measured = `a price by ${units.join(", ")} can be measured at ${places.join(", ")} only`
  return `${endpoint} would cost nothing: ${measured} (add another unit, such as request, or leave the endpoint out)`
}

function oneOf(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`
}

/** Why a route of this model to this vendor could never answer, as a sentence for the operator; null where it can. */
export function routeProblem(
  preset: VendorPreset,
  modelName: string,
  price: Price,
  endpoints: readonly Endpoint[] | null,
): string | null {
  const lacking = endpoints === null ? unmeasurable(preset, price) : endpoints.filter((name) => !isServed(preset, name))
  if (lacking.length === 0) return null
  const own = known.filter((name) => has(preset, name)).join(", ")
  return `model "${modelName}" cannot be served: vendor "${preset.name}" has no ${oneOf(lacking)} endpoint (it has: ${own})`
}

function unmeasurable(preset: VendorPreset, price: Price): readonly Endpoint[] {
  const wanted = endpointsForPrice(price)
  return wanted === null || wanted.some((name) => has(preset, name)) ? [] : wanted
}
