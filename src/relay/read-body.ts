import { GatewayError } from "../core/errors.ts"

/** A sender that gives no byte for this long is given up; a body read in one go must be whole by then. */
const bodyPatienceMs = 60_000

/** Bodies up to this size are read in one go; larger ones are scanned piece by piece as they arrive. */
const oneGoBytes = 256 * 1024

/** Looks at a body while it arrives. */
interface Scanner<T> {
  push(chunk: Uint8Array): void
  end(): T
}

/** The bytes of a request and what the scanner found in them; a body over the limit is refused as soon as that is known. */
export async function readBody<T>(
  request: Request,
  limit: number,
  scanner: Scanner<T>,
  explain: (error: unknown) => GatewayError | null,
): Promise<{ bytes: Uint8Array; found: T }> {
  const declared = request.headers.get("content-length")
  const length = declared === null ? null : Number(declared)
  if (length !== null && length > limit) throw tooLarge(limit)
  try {
    if (length !== null && length <= oneGoBytes) {
      const bytes = await inTime(request.bytes())
      scanner.push(bytes)
      return { bytes, found: scanner.end() }
    }
    const bytes = await collect(request, length, limit, scanner)
    return { bytes, found: scanner.end() }
  } catch (error) {
    throw explain(error) ?? error
  }
}

/** Gathers a large body in one buffer: of the declared size where there is one, growing otherwise. */
async function collect<T>(
  request: Request,
  length: number | null,
  limit: number,
  scanner: Scanner<T>,
): Promise<Uint8Array> {
  let buffer = new Uint8Array(length ?? oneGoBytes)
  let size = 0
  const reader = request.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined
  while (reader !== undefined) {
    const { done, value } = await inTime(reader.read())
    if (done) break
    if (size + value.length > limit) throw tooLarge(limit)
    if (size + value.length > buffer.length)
      buffer = grown(buffer, size, Math.min(limit, Math.max(buffer.length * 2, size + value.length)))
    scanner.push(value)
    buffer.set(value, size)
    size += value.length
  }
  return buffer.subarray(0, size)
}

function grown(buffer: Uint8Array, used: number, capacity: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(capacity)
  larger.set(buffer.subarray(0, used))
  return larger
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
