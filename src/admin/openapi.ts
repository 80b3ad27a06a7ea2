import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi"
import { queryOf } from "./parameters.ts"
import { answer, refusals } from "./responses.ts"

const securityScheme = "admin_token"

const documentSchema = z.object({ openapi: z.string(), info: z.object({ title: z.string(), version: z.string() }) })

const documentRoute = createRoute({
  method: "get",
  path: "/api/openapi.json",
  operationId: "getDescription",
  summary: "This description",
  tags: ["description"],
  request: { query: queryOf({}) },
  responses: { 200: answer("An OpenAPI 3.1 document.", documentSchema), ...refusals },
})

/** Serves the description of all routes that the app has by the first time someone asks. */
export function descriptionRoute(app: OpenAPIHono, version: string): void {
  app.openAPIRegistry.registerComponent("securitySchemes", securityScheme, {
    type: "http",
    scheme: "bearer",
    description: "The value of TOLLGATE_ADMIN_TOKEN.",
  })
  let document: ReturnType<typeof app.getOpenAPI31Document> | undefined
  app.openapi(documentRoute, (context) => {
    document ??= app.getOpenAPI31Document({
      openapi: "3.1.0",
      info: {
        title: "Tollgate back office",
        version,
        description: "Accounts, upstreams and models of the gateway; its ledger, requests and usage.",
      },
      security: [{ [securityScheme]: [] }],
    })
    return context.json(document, 200)
  })
}
