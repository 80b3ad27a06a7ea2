import { z } from "@hono/zod-openapi"

/* What answers look like, for the description of the API: the good one of each route and the refusals all have in common. */

const requestId = z.string().describe("Also in the header `x-request-id` of every answer.")

const errorSchema = z
  .object({
    error: z.object({
      type: z.string().describe("The family of the error, such as `invalid_request_error`."),
      code: z.string().describe("What went wrong, for programs."),
      message: z.string().describe("What went wrong, for people."),
      request_id: requestId,
    }),
    request_id: requestId,
  })
  .openapi("Error")

const authenticationErrorSchema = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.literal("invalid_request_error"),
      param: z.null(),
      code: z.literal("invalid_api_key"),
    }),
  })
  .openapi("AuthenticationError")

const drainingSchema = z.object({ error: z.literal("instance draining") }).openapi("Draining")

const requestIdHeader = { description: "Names the request in logs.", schema: { type: "string" } } as const

export function answer<Schema extends z.ZodType>(description: string, schema: Schema) {
  return { description, headers: { "x-request-id": requestIdHeader }, content: { "application/json": { schema } } }
}

export const refusals = {
  400: answer(
    "A parameter or field cannot be used; the message names it (`invalid_parameter`). Or the body is no JSON object (`invalid_json`).",
    errorSchema,
  ),
  401: {
    ...answer("The admin token is missing or wrong.", authenticationErrorSchema),
    headers: {
      "x-request-id": requestIdHeader,
      "www-authenticate": { description: "Always `Bearer`.", schema: { type: "string" } },
    },
  },
  500: answer("A fault of the gateway (`internal_error`).", errorSchema),
  503: answer(
    "The database is away (`backend_unavailable`), or this instance is about to end.",
    z.union([errorSchema, drainingSchema]),
  ),
} as const

/** The further refusals of routes that take a body. */
export const bodyRefusals = {
  413: answer("The body is too large (`request_body_too_large`).", errorSchema),
  415: answer("The body is not said to be JSON (`unsupported_media_type`).", errorSchema),
} as const

export const notFound = {
  404: answer("Nothing has that name (`not_found`).", errorSchema),
} as const
