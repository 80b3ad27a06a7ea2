import { GatewayError } from "../core/errors.ts"
import type { JsonObject } from "../core/json.ts"
import { textOf, utf8 } from "../lib/bytes.ts"
import { type Edit, type Field, JsonProblem, JsonScanner, type JsonShape } from "../lib/json-bytes.ts"
import { boundaryOf, MultipartProblem, MultipartScanner, type Part } from "../lib/multipart-bytes.ts"
import type { Pieces } from "../lib/pieces.ts"
import { readBody } from "./read-body.ts"

/** A request as it was asked: the caller's bytes, and what in them is the gateway's business. */
export interface Ask {
  /** The caller's bytes. */
  readonly body: Pieces
  readonly model: string
  readonly stream: boolean
  /** Where the fields an endpoint reads stand; null for a multipart body. */
  readonly shape: JsonShape | null
  /** The change that puts another model's name into the bytes. */
  nameModel(name: string): Edit
  /** The parts of a form with this name; none for a JSON body. */
  parts(name: string): readonly FormPart[]
  /** The whole request as an object, for those who must translate it; parsed once. */
  json(): JsonObject
}

/** One part of a multipart body. */
export interface FormPart {
  readonly isFile: boolean
  /** The content in one array, a copy where it arrived in pieces. */
  bytes(): Uint8Array
}

export type BodyKind = "json" | "multipart"

/** What requests to an endpoint must look like. */
export interface AskRules {
  /** The largest request body, in bytes. */
  readonly bodyLimit: number
  readonly bodies: readonly BodyKind[]
  /** Top-level request fields the gateway reads besides `model` and `stream`; each may stand there once. */
  readonly requestFields: readonly string[]
  /** Answers as a stream whatever the caller asked. */
  readonly alwaysStreams?: true
}

/** Reads and checks a request: its type, then its size as it arrives, then its shape. */
export async function readAsk(request: Request, rules: AskRules): Promise<Ask> {
  const type = request.headers.get("content-type") ?? ""
  const multipart = /^\s*multipart\//i.test(type)
  refuseUnreadable(request.headers, type, multipart, rules)
  return multipart ? readForm(request, type, rules) : readJson(request, rules)
}

function refuseUnreadable(headers: Headers, type: string, multipart: boolean, rules: AskRules): void {
  const encoding = headers.get("content-encoding")
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw new GatewayError(
      "unsupported_media_type",
      `content-encoding "${encoding.slice(0, 40)}" is not supported; send the body as it is`,
    )
  }
  if (rules.bodies.includes(multipart ? "multipart" : "json")) return
  const wanted = rules.bodies.map((kind) => (kind === "json" ? "application/json" : "multipart/form-data")).join(" or ")
  throw new GatewayError(
    "unsupported_media_type",
    `this endpoint takes ${wanted}, not ${type === "" ? "a body without content-type" : `"${type.slice(0, 60)}"`}`,
  )
}

async function readJson(request: Request, rules: AskRules): Promise<Ask> {
  const scanner = new JsonScanner(["model", "stream", ...rules.requestFields])
  const { body, found: shape } = await readBody(request, rules.bodyLimit, scanner, explainJson)
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
    stream: rules.alwaysStreams ?? shape.fields.get("stream")?.kind === "true",
    shape,
    nameModel: (name) => ({ at: field.value, put: utf8(JSON.stringify(name)) }),
    parts: () => [],
    json() {
      parsed ??= JSON.parse(textOf(body.whole())) as JsonObject
      return parsed
    },
  }
}

async function readForm(request: Request, type: string, rules: AskRules): Promise<Ask> {
  const boundary = boundaryOf(type)
  if (boundary === null)
    throw new GatewayError("invalid_parameter", "content-type: a multipart body needs a boundary of 1 to 70 characters")
  const { body, found: parts } = await readBody(request, rules.bodyLimit, new MultipartScanner(boundary), explainForm)
  const named = (wanted: string): readonly Part[] => parts.filter(({ name }) => name === wanted)
  for (const field of ["model", ...rules.requestFields]) if (named(field).length > 1) throw duplicate(field)
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
