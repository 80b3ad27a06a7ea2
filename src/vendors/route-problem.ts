import type { Price, PriceUnit } from "../core/catalog.ts"
import type { Endpoint } from "../core/endpoints.ts"
import type { VendorPreset } from "../core/vendor.ts"

/** Endpoints that a bridge can serve from another dialect's path. */
const bridges: Readonly<Partial<Record<Endpoint, readonly Endpoint[]>>> = {
  chat: ["messages"],
  messages: ["chat"],
  responses: ["chat"],
}

const images = ["image_generations", "image_edits", "image_variations"] as const
const tokens = ["chat", "responses", "messages", "embeddings", "rerank", "transcriptions", ...images, "speech"] as const

/** Where a unit can be measured; null: anywhere. */
const measuredAt: Readonly<Record<PriceUnit, readonly Endpoint[] | null>> = {
  input: tokens,
  cached_input: tokens,
  cache_write: tokens,
  output: tokens,
  image: images,
  second: ["video", "transcriptions", "translations"],
  character: ["speech"],
  request: null,
}

/** Whether a vendor can serve an endpoint, by its own path or over a bridge. */
export function isServed(preset: VendorPreset, endpoint: Endpoint): boolean {
  const ways: readonly Endpoint[] = [endpoint, ...(bridges[endpoint] ?? [])]
  return ways.some((way) => preset.paths[way] !== undefined)
}

/** The endpoints of which a route must have one, or null where any will do. */
function endpointsForPrice(price: Price): readonly Endpoint[] | null {
  if (price === "free") return null
  const wanted = new Set<Endpoint>()
  for (const unit of Object.keys(price) as PriceUnit[]) {
    const places = measuredAt[unit]
    if (places === null) return null
    for (const place of places) wanted.add(place)
  }
  return [...wanted]
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
  const has = Object.keys(preset.paths).join(", ")
  return `model "${modelName}" cannot be served: vendor "${preset.name}" has no ${oneOf(lacking)} endpoint (it has: ${has})`
}

function unmeasurable(preset: VendorPreset, price: Price): readonly Endpoint[] {
  const wanted = endpointsForPrice(price)
  return wanted === null || wanted.some((name) => preset.paths[name] !== undefined) ? [] : wanted
}
