import { GatewayError } from "../core/errors.ts"
import { mebibyte } from "../lib/bytes.ts"
import { paced } from "../lib/pace.ts"
import { Patience } from "../lib/patience.ts"
import { Pieces } from "../lib/pieces.ts"

/** A sender that gives no byte for this long is given up; a body read in one go must be whole by then. */
const patience = new Patience(60_000)

/** Bodies up to this size are read in one go; larger ones are scanned piece by piece as they arrive. */
const oneGoBytes = 256 * 1024

/** Large pieces are worked on in slices, so that other requests get their turn in between. */
const sliceBytes = 128 * 1024

/** Looks at a body while it arrives. */
interface Scanner<T> {
  push(chunk: Uint8Array): void
  end(): T
}

/** The body of a request and what the scanner found in them; a body over the limit is refused as soon as that is known. */
export async function readBody<T>(
  request: Request,
  limit: number,
  scanner: Scanner<T>,
  explain: (error: unknown) => GatewayError | null,
): Promise<{ body: Pieces; found: T }> {
  const declared = request.headers.get("content-length")
  const length = declared === null ? null : Number(declared)
  if (length !== null && length > limit) throw tooLarge(limit)
  try {
    if (length !== null && length <= oneGoBytes) {
      const bytes = await inTime(request.bytes())
      scanner.push(bytes)
      return { body: new Pieces([bytes]), found: scanner.end() }
    }
    return { body: await collect(request, limit, scanner), found: scanner.end() }
  } catch (error) {
    throw explain(error) ?? error
  }
}

/** Keeps a large body in the pieces it arrives in, looking at it slice by slice. */
async function collect<T>(request: Request, limit: number, scanner: Scanner<T>): Promise<Pieces> {
  const pieces: Uint8Array[] = []
  let size = 0
  const reader = request.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined
  while (reader !== undefined) {
    const { done, value } = await inTime(reader.read())
    if (done) break
    size += value.length
    if (size > limit) throw tooLarge(limit)
    pieces.push(value)
    for (let at = 0; at < value.length; at += sliceBytes) {
      const slice = value.subarray(at, at + sliceBytes)
      await paced(slice.length)
      scanner.push(slice)
    }
  }
  return new Pieces(pieces)
}

/** Gives up on a sender that is too slow; one coarse clock watches all of them. */
function inTime<T>(arriving: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const watch = patience.watch(() => reject(tooSlow()))
    arriving.then(
      (value) => {
        patience.forget(watch)
        resolve(value)
      },
      (error) => {
        patience.forget(watch)
        reject(error)
      },
    )
  })
}

function tooSlow(): GatewayError {
  return new GatewayError("request_timeout", "the request body did not arrive in time", {
    headers: { connection: "close" },
  })
}

function tooLarge(limit: number): GatewayError {
  // The rest of the body is never read, so the connection cannot be used again.
  return new GatewayError("request_body_too_large", `the request body is larger than ${limit / mebibyte} MiB`, {
    headers: { connection: "close" },
  })
}
