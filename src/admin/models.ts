import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi"
import type { Model, Snapshot } from "../core/catalog.ts"
import { endpoints } from "../core/endpoints.ts"
import type { Price, PriceUnit } from "../core/price.ts"
import { tokenizers } from "../core/tokenizer.ts"
import { missing } from "./errors.ts"
import { namedListing, pageOfAll, pageParameters, pageSchema, readPageAsk } from "./pages.ts"
import { nameInPath, queryOf, textParameter } from "./parameters.ts"
import type { AdminParts } from "./parts.ts"
import { answer, notFound, refusals } from "./responses.ts"

const amount = (meaning: string) => z.string().optional().describe(`Dollars per ${meaning}, as an exact decimal.`)

export const unitFields = {
  input: amount("million input tokens"),
  cached_input: amount("million input tokens read from the vendor's cache"),
  cache_write: amount("million input tokens written to the vendor's cache"),
  audio_input: amount("million input tokens of audio"),
  output: amount("million output tokens"),
  audio_output: amount("million output tokens of audio"),
  image: amount("output image"),
  second: amount("second of video or audio"),
  character: amount("input character"),
  request: amount("call, or per search unit of a rerank vendor that counts them"),
} satisfies Record<PriceUnit, z.ZodType>

const tierSchema = z
  .object({
    above_input: z.int().optional().describe("Fits answers to more input tokens than this."),
    size: z.string().optional().describe("Fits pictures of this size."),
    quality: z.string().optional().describe("Fits pictures of this quality."),
    ...unitFields,
  })
  .openapi("PriceTier")

const priceSchema = z
  .union([
    z.literal("free"),
    z.object({
      ...unitFields,
      tiers: z
        .array(tierSchema)
        .optional()
        .describe("Other prices for some answers; of those that fit, later ones win."),
    }),
  ])
  .openapi("Price")

const routeSchema = z
  .object({
    upstream: z.string().describe("The name of the upstream."),
    model: z.string().describe("The upstream's own name for the model."),
    priority: z.int().describe("Lower is asked first."),
    weight: z.int().describe("Share inside one priority."),
  })
  .openapi("Route")

const modelSchema = z
  .object({
    name: z.string(),
    price: priceSchema,
    tokenizer: z.enum(tokenizers).describe("What tokens are counted with where an upstream does not say how many."),
    endpoints: z.array(z.enum(endpoints)).describe("The operations that its routes can serve."),
    routes: z.array(routeSchema).describe("In the order of their priorities."),
  })
  .openapi("Model")

const listing = namedListing("models")

const listRoute = createRoute({
  method: "get",
  path: "/api/models",
  operationId: "listModels",
  summary: "Models in the order of their names",
  tags: ["models"],
  request: { query: queryOf({ ...pageParameters, name: textParameter("Only the model of this name.") }) },
  responses: { 200: answer("A page of models.", pageSchema(modelSchema, "ModelPage")), ...refusals },
})

const oneRoute = createRoute({
  method: "get",
  path: "/api/models/{m}",
  operationId: "getModel",
  summary: "One model",
  tags: ["models"],
  request: {
    params: z.object({ m: nameInPath("The model's name; slashes in it may be percent-encoded or stand as they are.") }),
    query: queryOf({}),
  },
  responses: { 200: answer("The model.", modelSchema), ...refusals, ...notFound },
})

/** The same for a name with bare slashes, which OpenAPI cannot describe. */
const slashedRoute = createRoute({ ...oneRoute, path: "/api/models/:m{.+}", hide: true })

export function modelRoutes(app: OpenAPIHono, parts: AdminParts): void {
  app.openapi(listRoute, (context) => {
    const { name, ...query } = context.req.valid("query")
    const ask = readPageAsk(listing, query)
    const snapshot = parts.snapshot()
    const wanted = [...snapshot.models.values()].filter((model) => name === undefined || model.name === name)
    const { items, next } = pageOfAll(ask, wanted)
    return context.json({ data: items.map((model) => modelView(model, snapshot)), next }, 200)
  })
  app.openapi(oneRoute, (context) => context.json(find(context.req.valid("param").m, parts.snapshot()), 200))
  app.openapi(slashedRoute, (context) => context.json(find(context.req.valid("param").m, parts.snapshot()), 200))
}

function find(name: string, snapshot: Snapshot): ModelView {
  const model = snapshot.models.get(name)
  if (model === undefined) throw missing("model", name)
  return modelView(model, snapshot)
}

type ModelView = z.infer<typeof modelSchema>

function modelView(model: Model, snapshot: Snapshot): ModelView {
  return {
    name: model.name,
    price: priceView(model.price),
    tokenizer: model.tokenizer,
    endpoints: endpoints.filter((endpoint) => snapshot.routes(model, endpoint).length > 0),
    routes: model.routes.map(({ upstream, upstreamModel, priority, weight }) => ({
      upstream: upstream.name,
      model: upstreamModel,
      priority,
      weight,
    })),
  }
}

/** Spelled as in the config file. */
function priceView(price: Price): ModelView["price"] {
  if (price === "free") return price
  const { tiers, ...units } = price
  if (tiers === undefined) return units
  return {
    ...units,
    tiers: tiers.map(({ aboveInput, prices, ...words }) => ({
      ...(aboveInput !== undefined && { above_input: aboveInput }),
      ...words,
      ...prices,
    })),
  }
}
