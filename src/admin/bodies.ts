import type { z } from "@hono/zod-openapi"
import type { MiddlewareHandler } from "hono"
import { GatewayError } from "../core/errors.ts"
import { isObject } from "../core/json.ts"
import { onlyOf } from "./parameters.ts"

const mostBodyBytes = 64 * 1024
const jsonType = "application/json"

/** The body of a route: a JSON object of these fields and no others, because a mistyped field must not quietly do nothing. */
export function bodyOf<Shape extends z.ZodRawShape>(shape: Shape, name: string) {
  const schema = onlyOf(shape, "a field of this body").openapi(name)
  return { required: true, content: { [jsonType]: { schema } } } as const
}

/** Reads a body before the checks of its route, which then have a small JSON object at hand. */
export const jsonBody: MiddlewareHandler = async ({ req }, next) => {
  requireJsonType(req.header("content-type"))
  const body = await readSmall(req.raw)
  requireObject(body)
  // Where no usable host was sent, the address is the path alone.
  const url = new URL(req.raw.url, "http://localhost")
  req.raw = new Request(url.href, { method: req.method, headers: { "content-type": jsonType }, body })
  await next()
}

/** A page of another site can make a browser send anything but this type without asking. */
function requireJsonType(type: string | undefined): void {
  if (type?.split(";")[0]?.trim().toLowerCase() === jsonType) return
  throw new GatewayError("unsupported_media_type", `the body must come with content-type: ${jsonType}`)
}

async function readSmall(request: Request): Promise<Uint8Array<ArrayBuffer>> {
  if (Number(request.headers.get("content-length") ?? 0) > mostBodyBytes) throw tooLarge()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > mostBodyBytes) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function tooLarge(): GatewayError {
  // The rest of the body is never read, so the connection cannot be used again.
  return new GatewayError("request_body_too_large", `the body is larger than ${mostBodyBytes} bytes`, {
    headers: { connection: "close" },
  })
}

function requireObject(body: Uint8Array): void {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body))
  } catch {
    throw new GatewayError("invalid_json", "the body is not JSON")
  }
  if (!isObject(value)) throw new GatewayError("invalid_json", "the body must be a JSON object")
}
