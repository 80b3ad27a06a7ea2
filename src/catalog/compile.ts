import type { Model, Route, Snapshot, Upstream } from "../core/catalog.ts"
import type { Endpoint } from "../core/endpoints.ts"
import { isObject } from "../core/json.ts"
import { baseUnitsOf } from "../core/price.ts"
import { defaultDrainMs, defaultTimeouts, type Timeouts } from "../core/timeouts.ts"
import { usualTokenizer } from "../core/tokenizer.ts"
import { SealError, type Vault } from "../lib/seal.ts"
import { suggest } from "../lib/suggest.ts"
import type { CatalogRows } from "../store/catalog.ts"
import type { ModelRow } from "../store/models.ts"
import { credentialContext, type UpstreamRow } from "../store/upstreams.ts"
import { findVendor, vendorNames } from "../vendors/presets.ts"
import { endpointProblem, isPriced, isServed, routeProblem } from "../vendors/route-problem.ts"
import type { CatalogProblem } from "./problem.ts"

export type Compiled =
  | { readonly usable: true; readonly snapshot: Snapshot }
  | { readonly usable: false; readonly problems: readonly CatalogProblem[] }

/** Turns rows into what requests are served by, or says everything that stands against it. */
export function compile(rows: CatalogRows, vault: Vault): Compiled {
  const problems: CatalogProblem[] = []
  const { drain, ...common } = readTimeouts(rows.settings.timeouts)
  const timeouts: Timeouts = { ...defaultTimeouts, ...common }
  const upstreams = new Map<string, Upstream>()
  for (const row of rows.upstreams) {
    const upstream = compileUpstream(row, timeouts, vault, problems)
    if (upstream !== null) upstreams.set(row.name, upstream)
  }
  const known = new Set(rows.upstreams.map((row) => row.name))
  const models = new Map<string, Model>()
  for (const row of rows.models) models.set(row.name, compileModel(row, upstreams, known, problems))
  if (problems.length > 0) return { usable: false, problems }
  const plans = new Map(rows.plans.map((plan) => [plan.name, plan]))
  const routes = routesByEndpoint()
  const { cors_origins: corsOrigins, allow_private_addresses: allowPrivateAddresses } = rows.settings
  return {
    usable: true,
    snapshot: {
      version: rows.version,
      models,
      plans,
      upstreams,
      drainMs: drain ?? defaultDrainMs,
      corsOrigins: Array.isArray(corsOrigins) ? (corsOrigins as readonly string[]) : [],
      allowPrivateAddresses: allowPrivateAddresses === true,
      keepRequestsMs: readKeepRequests(rows.settings.retention),
      routes,
    },
  }
}

function compileUpstream(
  row: UpstreamRow,
  timeouts: Timeouts,
  vault: Vault,
  problems: CatalogProblem[],
): Upstream | null {
  const refuse = (field: string, message: string): null => {
    problems.push({ section: "upstreams", name: row.name, field, message })
    return null
  }
  const vendor = findVendor(row.vendor)
  if (vendor === undefined)
    return refuse(
      "vendor",
      `${JSON.stringify(row.vendor)} is not a vendor; the known ones are: ${vendorNames.join(", ")}`,
    )
  const baseUrl = row.baseUrl ?? vendor.baseUrl
  if (baseUrl === null)
    return refuse("base_url", `is required, because every customer of ${vendor.title} has an address of its own`)
  if (row.credentials.length === 0 && vendor.auth !== "none" && !vendor.keyOptional)
    return refuse("api_key", `is required by ${vendor.title}`)
  let credentials: string[]
  try {
    credentials = row.credentials.map(({ sealed }, position) =>
      vault.unseal(sealed, credentialContext(row.name, position)),
    )
  } catch (error) {
    if (error instanceof SealError) return refuse("api_key", error.message)
    throw error
  }
  return {
    id: row.id,
    name: row.name,
    vendor,
    baseUrl,
    credentials,
    headers: row.headers,
    timeouts: { ...timeouts, ...row.timeouts },
    concurrency: row.concurrency,
    settings: row.settings,
  }
}

/** `known` also holds the names of upstreams that have problems of their own, so that one mistake is told once. */
function compileModel(
  row: ModelRow,
  upstreams: ReadonlyMap<string, Upstream>,
  known: ReadonlySet<string>,
  problems: CatalogProblem[],
): Model {
  const refuse = (field: string, message: string): void => {
    problems.push({ section: "models", name: row.name, field, message })
  }
  if (row.routes.length === 0) refuse("routes", "a model needs at least one route")
  if (row.price !== "free" && baseUnitsOf(row.price).length === 0)
    refuse("price", "a model needs a price; `free` says so aloud")
  else
    row.endpoints?.forEach((endpoint, position) => {
      const problem = endpointProblem(row.price, endpoint)
      if (problem !== null) refuse(`endpoints[${position}]`, problem)
    })
  const routes: Route[] = []
  row.routes.forEach((route, position) => {
    const upstream = upstreams.get(route.upstream)
    if (upstream === undefined) {
      if (!known.has(route.upstream)) refuse(`routes[${position}].upstream`, missingUpstream(route.upstream, known))
      return
    }
    const problem = routeProblem(upstream.vendor, row.name, row.price, row.endpoints)
    if (problem !== null) refuse(`routes[${position}].upstream`, problem)
    routes.push({ upstream, upstreamModel: route.upstreamModel, priority: route.priority, weight: route.weight })
  })
  routes.sort((a, b) => a.priority - b.priority)
  return {
    name: row.name,
    price: row.price,
    tokenizer: row.tokenizer ?? usualTokenizer,
    createdAt: row.createdAt,
    endpoints: row.endpoints,
    routes,
  }
}

export function missingUpstream(name: string, known: Iterable<string>): string {
  const close = suggest(name, known)
  return `${JSON.stringify(name)} is not an upstream${close === null ? "" : ` (did you mean ${JSON.stringify(close)}?)`}`
}

/**
 * Answers which routes serve an endpoint, remembering each answer: it cannot change within a snapshot. There are none
 * where the model's price cannot be measured.
 */
function routesByEndpoint(): Snapshot["routes"] {
  const remembered = new WeakMap<Model, Map<Endpoint, readonly Route[]>>()
  return (model, endpoint) => {
    let byEndpoint = remembered.get(model)
    if (byEndpoint === undefined) {
      byEndpoint = new Map()
      remembered.set(model, byEndpoint)
    }
    let routes = byEndpoint.get(endpoint)
    if (routes === undefined) {
      const wanted = model.endpoints === null || model.endpoints.includes(endpoint)
      const offered = wanted && isPriced(model.price, endpoint)
      routes = offered ? model.routes.filter(({ upstream }) => isServed(upstream.vendor, endpoint)) : []
      byEndpoint.set(endpoint, routes)
    }
    return routes
  }
}

function readTimeouts(setting: unknown): Partial<Timeouts> & { drain?: number } {
  return isObject(setting) ? (setting as Partial<Timeouts> & { drain?: number }) : {}
}

const usualKeepRequestsMs = 90 * 24 * 3_600_000

function readKeepRequests(retention: unknown): number | null {
  const requests = isObject(retention) ? retention.requests : undefined
  return typeof requests === "number" || requests === null ? requests : usualKeepRequestsMs
}
