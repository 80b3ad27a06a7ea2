import { GatewayError } from "../core/errors.ts"
import type { VideoImage, VideoVendor } from "../core/video-vendor.ts"
import { mebibyte } from "../lib/bytes.ts"
import { readUpTo, Unreachable } from "../upstream/client.ts"
import { Forbidden, type Resolve } from "../upstream/guard.ts"
import { openResult } from "../upstream/result.ts"
import { dataUrlBase64, namedType, pictureTypes, typeOfPicture } from "./picture-bytes.ts"

const mostMebibytes = 20
const mostBytes = mostMebibytes * mebibyte
const usualPatienceMs = 10_000

export interface PictureParts {
  readonly allowPrivateAddresses: boolean
  /** The caller's own: its reason is thrown as it is. */
  readonly signal: AbortSignal
  /** How long fetching may take. */
  readonly patienceMs?: number
  readonly resolve?: Resolve
}

/** The caller's picture, an https URL or a data URL, in a way that the vendor takes; fetched and looked at where it must be. */
export async function pictureFor(
  image: string,
  takes: VideoVendor["images"],
  parts: PictureParts,
): Promise<VideoImage> {
  const base64 = dataUrlBase64(image)
  if (base64 === null && takes.byUrl) return { url: image }
  if (!takes.byData) {
    throw refusal(
      takes.byUrl ? "this model takes a picture by its https URL only, not as data" : "this model takes no picture",
    )
  }
  return base64 === null ? fetched(image, parts) : readData(base64)
}

function readData(base64: string): VideoImage {
  if (base64.length > Math.ceil(mostBytes / 3) * 4) throw tooLarge()
  const bytes = Buffer.from(base64, "base64")
  // Decoding skips what is no base64; only what was all of it comes back the same.
  if (bytes.toString("base64") !== base64) throw refusal("the data URL is not valid base64 (with its padding)")
  if (bytes.length > mostBytes) throw tooLarge()
  const mediaType = typeOfPicture(bytes)
  if (mediaType === null) throw refusal(`the data is no picture of a known kind (${pictureTypes.join(", ")})`)
  return { mediaType, base64 }
}

async function fetched(address: string, parts: PictureParts): Promise<VideoImage> {
  const patienceMs = parts.patienceMs ?? usualPatienceMs
  const patience = AbortSignal.timeout(patienceMs)
  const signal = AbortSignal.any([parts.signal, patience])
  try {
    return await unlessAborted(signal, fetchPicture(address, { ...parts, signal }))
  } catch (error) {
    parts.signal.throwIfAborted()
    if (error instanceof GatewayError) throw error
    if (patience.aborted) throw refusal(`the picture did not arrive within ${patienceMs / 1000} seconds`, error)
    throw refusal("the picture could not be fetched: the connection broke off", error)
  }
}

async function fetchPicture(address: string, parts: PictureParts): Promise<VideoImage> {
  const response = await open(address, parts)
  const type = response.headers.get("content-type") ?? ""
  const named = namedType(type)
  const problem = problemOf(response, type, named)
  if (problem !== null) {
    // Its end is not waited for: a server that does not let go is no concern of the caller's.
    response.body?.cancel().catch(() => {})
    throw problem
  }
  const bytes = await read(response)
  if (typeOfPicture(bytes) !== named)
    throw refusal(`the address answers with something else than the ${named} it names`)
  return { mediaType: named!, base64: Buffer.from(bytes).toString("base64") }
}

/** One answer for an address that is not public and one that does not answer: callers must not learn which names exist inside. */
async function open(address: string, parts: PictureParts): Promise<Response> {
  const { allowPrivateAddresses, signal, resolve } = parts
  const ask = { address, method: "GET", range: null, credential: () => null, signal } as const
  const guarded = { ...ask, allowPrivate: allowPrivateAddresses, ...(resolve === undefined ? {} : { resolve }) }
  try {
    return await openResult(guarded)
  } catch (error) {
    if (!(error instanceof Forbidden || error instanceof Unreachable)) throw error
    throw refusal(
      "the picture could not be fetched: nothing answers, or the address or one that it redirects to is no public https address",
      error,
    )
  }
}

/** What can be said against a picture before it is read. */
function problemOf(response: Response, type: string, named: string | null): GatewayError | null {
  if (!response.ok) return refusal(`the picture could not be fetched: its address answers ${response.status}`)
  if (named === null) {
    const found = type === "" ? "without a content-type" : `with ${JSON.stringify(type.slice(0, 60))}`
    return refusal(`the address answers ${found}, not with a picture (${pictureTypes.join(", ")})`)
  }
  return Number(response.headers.get("content-length") ?? 0) > mostBytes ? tooLarge() : null
}

async function read(response: Response): Promise<Uint8Array> {
  try {
    return await readUpTo(response, mostBytes)
  } catch (error) {
    throw error instanceof Forbidden ? tooLarge() : error
  }
}

/** Looking up a name heeds no signal, so the signal is heeded here. */
function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  signal.addEventListener("abort", () => reject(signal.reason), { once: true })
  return Promise.race([work, aborted])
}

function tooLarge(): GatewayError {
  return refusal(`the picture is larger than ${mostMebibytes} MiB`)
}

/** Named after the documented field; `image` is another name for it. */
function refusal(problem: string, cause?: unknown): GatewayError {
  return new GatewayError("invalid_parameter", `image_url: ${problem}`, cause === undefined ? {} : { cause })
}
