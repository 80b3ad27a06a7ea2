import { GatewayError } from "../core/errors.ts"
import type { JsonObject } from "../core/json.ts"
import { textOf, utf8 } from "../lib/bytes.ts"
import { type Field, JsonProblem, JsonScanner } from "../lib/json-bytes.ts"
import { boundaryOf, MultipartProblem, MultipartScanner, type Part } from "../lib/multipart-bytes.ts"
import type { Pieces } from "../lib/pieces.ts"
import type { Ask, Protocol } from "./protocol.ts"
import { readBody } from "./read-body.ts"

/** Reads and checks a request: its type, then its size as it arrives, then its shape. */
export async function readAsk(request: Request, protocol: Protocol): Promise<Ask> {
  const type = request.headers.get("content-type") ?? ""
  const multipart = /^\s*multipart\//i.test(type)
  refuseUnreadable(request.headers, type, multipart, protocol)
  return multipart ? readForm(request, type, protocol) : readJson(request, protocol)
}

function refuseUnreadable(headers: Headers, type: string, multipart: boolean, protocol: Protocol): void {
  const encoding = headers.get("content-encoding")
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw new GatewayError(
      "unsupported_media_type",
      `content-encoding "${encoding.slice(0, 40)}" is not supported; send the body as it is`,
    )
  }
  if (protocol.bodies.includes(multipart ? "multipart" : "json")) return
  const wanted = protocol.bodies
    .map((kind) => (kind === "json" ? "application/json" : "multipart/form-data"))
    .join(" or ")
  throw new GatewayError(
    "unsupported_media_type",
    `this endpoint takes ${wanted}, not ${type === "" ? "a body without content-type" : `"${type.slice(0, 60)}"`}`,
  )
}

async function readJson(request: Request, protocol: Protocol): Promise<Ask> {
  const scanner = new JsonScanner(["model", "stream", ...protocol.requestFields])
  const { body, found: shape } = await readBody(request, protocol.bodyLimit, scanner, explainJson)
  if (shape.root !== "object") throw new GatewayError("invalid_json", "the request body must be a JSON object")
  const twice = shape.duplicates[0]
  if (twice !== undefined) throw duplicate(twice)
  const field = shape.fields.get("model")
  const model = field?.kind === "string" ? readString(body, field) : ""
  if (field === undefined || model === "")
    throw missingModel('the request body must have a "model": a non-empty string')
  let parsed: JsonObject | null = null
  return {
    body,
    model,
    stream: protocol.alwaysStreams ?? shape.fields.get("stream")?.kind === "true",
    shape,
    nameModel: (name) => ({ at: field.value, put: utf8(JSON.stringify(name)) }),
    parts: () => [],
    json() {
      parsed ??= JSON.parse(textOf(body.whole())) as JsonObject
      return parsed
    },
  }
}

async function readForm(request: Request, type: string, protocol: Protocol): Promise<Ask> {
  const boundary = boundaryOf(type)
  if (boundary === null)
    throw new GatewayError("invalid_parameter", "content-type: a multipart body needs a boundary of 1 to 70 characters")
  const { body, found: parts } = await readBody(
    request,
    protocol.bodyLimit,
    new MultipartScanner(boundary),
    explainForm,
  )
  const named = (wanted: string): readonly Part[] => parts.filter(({ name }) => name === wanted)
  for (const field of ["model", ...protocol.requestFields]) if (named(field).length > 1) throw duplicate(field)
  const [part] = named("model")
  const model = part === undefined || part.hasFilename ? "" : textOf(body.part(part.value))
  if (part === undefined || model === "") throw missingModel('the form must have a part "model": a non-empty text')
  return {
    body,
    model,
    stream: isTrue(body, named("stream")[0]),
    shape: null,
    nameModel: (name) => ({ at: part.value, put: utf8(name) }),
    parts: (name) =>
      named(name).map(({ value, hasFilename }) => ({ isFile: hasFilename, bytes: () => body.part(value) })),
    json() {
      throw new Error("a form is never translated")
    },
  }
}

function isTrue(body: Pieces, part: Part | undefined): boolean {
  return part !== undefined && textOf(body.part(part.value)).toLowerCase() === "true"
}

function explainJson(error: unknown): GatewayError | null {
  if (!(error instanceof JsonProblem)) return null
  return new GatewayError("invalid_json", `the request body is not valid JSON: ${error.message}`)
}

function explainForm(error: unknown): GatewayError | null {
  if (!(error instanceof MultipartProblem)) return null
  return new GatewayError("invalid_parameter", `the request body is not a valid multipart form: ${error.message}`)
}

function duplicate(key: string): GatewayError {
  return new GatewayError("duplicate_key", `the key "${key}" stands more than once in the request body`)
}

function missingModel(message: string): GatewayError {
  return new GatewayError("missing_model", message)
}

function readString(body: Pieces, field: Field): string {
  return JSON.parse(textOf(body.part(field.value))) as string
}
