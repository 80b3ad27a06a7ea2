import { GatewayError } from "../core/errors.ts"
import { textOf } from "../lib/bytes.ts"
import { type Field, JsonProblem, JsonScanner } from "../lib/json-bytes.ts"
import type { Ask, Protocol } from "./protocol.ts"

/** A sender that gives no byte for this long is given up; a body read in one go must be whole by then. */
const bodyPatienceMs = 60_000

/** Bodies up to this size are read in one go; larger ones are scanned piece by piece as they arrive. */
const oneGoBytes = 256 * 1024

/** Reads and checks a JSON request: size first, then shape. */
export async function readAsk(request: Request, protocol: Protocol): Promise<Ask> {
  refuseUnreadable(request.headers)
  const scanner = new JsonScanner(["model", "stream", ...protocol.requestFields])
  const { bytes, shape } = await readScanned(request, protocol.bodyLimit, scanner)
  if (shape.root !== "object") throw new GatewayError("invalid_json", "the request body must be a JSON object")
  const twice = shape.duplicates[0]
  if (twice !== undefined) {
    throw new GatewayError("duplicate_key", `the key "${twice}" stands more than once in the request body`)
  }
  const modelField = shape.fields.get("model")
  const model = modelField?.kind === "string" ? readString(bytes, modelField) : ""
  if (modelField === undefined || model === "") {
    throw new GatewayError("missing_model", 'the request body must have a "model": a non-empty string')
  }
  return { bytes, model, modelField, stream: shape.fields.get("stream")?.kind === "true", shape }
}

function refuseUnreadable(headers: Headers): void {
  const encoding = headers.get("content-encoding")
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw new GatewayError(
      "unsupported_media_type",
      `content-encoding "${encoding.slice(0, 40)}" is not supported; send the body as it is`,
    )
  }
  const type = headers.get("content-type")
  if (type !== null && /^\s*multipart\//i.test(type)) {
    throw new GatewayError("unsupported_media_type", "this endpoint takes application/json, not multipart")
  }
}

async function readScanned(request: Request, limit: number, scanner: JsonScanner) {
  const declared = request.headers.get("content-length")
  const length = declared === null ? null : Number(declared)
  if (length !== null && length > limit) throw tooLarge(limit)
  try {
    if (length !== null && length <= oneGoBytes) {
      const bytes = await inTime(request.bytes())
      scanner.push(bytes)
      return { bytes, shape: scanner.end() }
    }
    return { bytes: await collect(request, limit, (chunk) => scanner.push(chunk)), shape: scanner.end() }
  } catch (error) {
    if (error instanceof JsonProblem)
      throw new GatewayError("invalid_json", `the request body is not valid JSON: ${error.message}`)
    throw error
  }
}

async function collect(request: Request, limit: number, see: (chunk: Uint8Array) => void): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = request.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined
  while (reader !== undefined) {
    const { done, value } = await inTime(reader.read())
    if (done) break
    size += value.length
    if (size > limit) throw tooLarge(limit)
    see(value)
    chunks.push(value)
  }
  return Buffer.concat(chunks, size)
}

async function inTime<T>(arriving: Promise<T>): Promise<T> {
  let timer: Timer | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooSlow()), bodyPatienceMs)
  })
  try {
    return await Promise.race([arriving, late])
  } finally {
    clearTimeout(timer)
  }
}

function tooSlow(): GatewayError {
  return new GatewayError("request_timeout", "the request body did not arrive in time", {
    headers: { connection: "close" },
  })
}

function tooLarge(limit: number): GatewayError {
  // The rest of the body is never read, so the connection cannot be used again.
  return new GatewayError("request_body_too_large", `the request body is larger than ${limit / 1024 / 1024} MiB`, {
    headers: { connection: "close" },
  })
}

function readString(bytes: Uint8Array, field: Field): string {
  return JSON.parse(textOf(bytes.subarray(field.value.start, field.value.end))) as string
}
