import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi"
import type { Upstream } from "../core/catalog.ts"
import type { CircuitState } from "../core/events.ts"
import { formatDuration } from "../lib/duration.ts"
import { missing } from "./errors.ts"
import { namedListing, pageOfAll, pageParameters, pageSchema, readPageAsk } from "./pages.ts"
import { choiceParameter, nameInPath, queryOf, textParameter } from "./parameters.ts"
import type { AdminParts } from "./parts.ts"
import { answer, notFound, refusals } from "./responses.ts"

const circuitStates = ["closed", "open", "half_open"] as const satisfies readonly CircuitState[]

const duration = (meaning: string) => z.string().describe(meaning).openapi({ example: "120s" })

const upstreamSchema = z
  .object({
    name: z.string(),
    vendor: z.string().describe("The vendor preset: protocol, paths and authentication."),
    base_url: z.string(),
    headers: z.array(z.string()).describe("Names of the extra headers of every call; their values may be secret."),
    timeouts: z
      .object({
        non_stream: duration("A non-streaming request in all."),
        first_token: duration("From asking the upstream to its first token."),
        silence: duration("Between two signs of progress in a stream."),
        total: duration("A streaming request in all."),
      })
      .describe("The time-outs that apply, its own or the general ones."),
    concurrency: z.int().describe("Requests in flight at once to this upstream; 0: unlimited."),
    settings: z.record(z.string(), z.unknown()).describe("Settings that only its vendor has."),
    credentials: z.int().describe("How many credentials it has; they are never shown."),
    circuit: z.enum(circuitStates).describe("Whether this instance asks it: yes, not now, or one call to try it."),
  })
  .openapi("Upstream")

const listing = namedListing("upstreams")

const listRoute = createRoute({
  method: "get",
  path: "/api/upstreams",
  operationId: "listUpstreams",
  summary: "Upstreams in the order of their names",
  tags: ["upstreams"],
  request: {
    query: queryOf({
      ...pageParameters,
      name: textParameter("Only the upstream of this name."),
      vendor: textParameter("Only upstreams of this vendor."),
      circuit: choiceParameter("Only upstreams whose circuit is in this state.", circuitStates),
    }),
  },
  responses: { 200: answer("A page of upstreams.", pageSchema(upstreamSchema, "UpstreamPage")), ...refusals },
})

const oneRoute = createRoute({
  method: "get",
  path: "/api/upstreams/{u}",
  operationId: "getUpstream",
  summary: "One upstream",
  tags: ["upstreams"],
  request: { params: z.object({ u: nameInPath("The upstream's name.") }), query: queryOf({}) },
  responses: { 200: answer("The upstream.", upstreamSchema), ...refusals, ...notFound },
})

export function upstreamRoutes(app: OpenAPIHono, parts: AdminParts): void {
  app.openapi(listRoute, (context) => {
    const { name, vendor, circuit, ...query } = context.req.valid("query")
    const ask = readPageAsk(listing, query)
    const wanted = [...parts.snapshot().upstreams.values()].filter(
      (upstream) =>
        (name === undefined || upstream.name === name) &&
        (vendor === undefined || upstream.vendor.name === vendor) &&
        (circuit === undefined || parts.circuit(upstream.id) === circuit),
    )
    const { items, next } = pageOfAll(ask, wanted)
    return context.json({ data: items.map((upstream) => upstreamView(upstream, parts)), next }, 200)
  })
  app.openapi(oneRoute, (context) => {
    const { u } = context.req.valid("param")
    const upstream = parts.snapshot().upstreams.get(u)
    if (upstream === undefined) throw missing("upstream", u)
    return context.json(upstreamView(upstream, parts), 200)
  })
}

/** Names each field that may be seen, so that a field added to upstreams stays unseen until someone decides. */
function upstreamView(upstream: Upstream, { circuit }: AdminParts): z.infer<typeof upstreamSchema> {
  const { nonStream, firstToken, silence, total } = upstream.timeouts
  return {
    name: upstream.name,
    vendor: upstream.vendor.name,
    base_url: upstream.baseUrl,
    headers: Object.keys(upstream.headers),
    timeouts: {
      non_stream: formatDuration(nonStream),
      first_token: formatDuration(firstToken),
      silence: formatDuration(silence),
      total: formatDuration(total),
    },
    concurrency: upstream.concurrency,
    settings: upstream.settings,
    credentials: upstream.credentials.length,
    circuit: circuit(upstream.id),
  }
}
