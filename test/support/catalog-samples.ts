import type { Route, Upstream } from "../../src/core/catalog.ts"
import { defaultTimeouts } from "../../src/core/timeouts.ts"
import type { VendorPreset } from "../../src/core/vendor.ts"

/** A vendor that serves chat and nothing else. */
export const sampleVendor: VendorPreset = {
  name: "sample",
  title: "Sample",
  baseUrl: "http://127.0.0.1:1/v1",
  auth: "bearer",
  paths: { chat: "/chat/completions" },
}

export function sampleUpstream(name: string, changes: Partial<Upstream> = {}): Upstream {
  return {
    id: `id-${name}`,
    name,
    vendor: sampleVendor,
    baseUrl: "http://127.0.0.1:1/v1",
    credentials: ["sk-upstream-secret"],
    headers: {},
    timeouts: defaultTimeouts,
    concurrency: 0,
    settings: {},
    ...changes,
  }
}

export function sampleRoute(name: string, changes: Partial<Route> = {}): Route {
  return { upstream: sampleUpstream(name), upstreamModel: name, priority: 1, weight: 100, ...changes }
}
