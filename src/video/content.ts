import { GatewayError } from "../core/errors.ts"
import type { VideoJob } from "../core/video-job.ts"
import { isSingleRange } from "../lib/byte-range.ts"
import { Forbidden } from "../upstream/guard.ts"
import { openResult, type ResultAsk } from "../upstream/result.ts"
import type { ResultStore, StoredPart } from "./results.ts"

/** How long a vendor may take to begin its answer, and to go on with it while the caller wants more. */
export const contentLimits = { answerMs: 30_000, silenceMs: 60_000 } as const

/** What of a job it takes to serve its result. */
export type ContentJob = Pick<VideoJob, "id" | "state" | "resultUrl" | "resultNeedsCredential" | "resultKept"> & {
  readonly route: Pick<VideoJob["route"], "baseUrl">
}

export interface ContentAsk {
  readonly method: "GET" | "HEAD"
  /** The caller's `range` header. */
  readonly range: string | null
  /** Fires when the caller has left. */
  readonly signal: AbortSignal
}

export interface ContentParts {
  readonly results: ResultStore | null
  readonly allowPrivateAddresses: boolean
  /** The headers that carry the credential of the job's upstream to an address; null where it may not go there. */
  credentialFor(job: ContentJob, url: URL): Readonly<Record<string, string>> | null
  /** Asks the vendor for a fresh address of the result; null where it has none. */
  renew(job: ContentJob): Promise<string | null>
  readonly limits?: { readonly answerMs: number; readonly silenceMs: number }
  readonly resolve?: ResultAsk["resolve"]
}

/** The film of a completed job, or the part of it that was asked for: out of the copy where one is kept, else from the vendor. */
export async function contentResponse(job: ContentJob, asked: ContentAsk, parts: ContentParts): Promise<Response> {
  if (job.state !== "completed") throw new GatewayError("not_found", "this job has no video, or none yet")
  const { range } = asked
  // What is no range is ignored, as if it were not there.
  const ask = { ...asked, range: range !== null && isSingleRange(range) ? range : null }
  const part = (await keptPart(job, ask, parts)) ?? (await vendorPart(job, ask, parts))
  const isHead = ask.method === "HEAD"
  if (isHead && part.body instanceof ReadableStream) await part.body.cancel()
  return new Response(isHead ? null : part.body, {
    status: part.status,
    headers: {
      ...part.headers,
      "content-disposition": `inline; filename="${job.id}.mp4"`,
      // The bytes are a vendor's, and are answered from our own origin.
      "x-content-type-options": "nosniff",
    },
  })
}

/** A copy that cannot be read is no reason to give up while the vendor may still have its own. */
async function keptPart(job: ContentJob, { range }: ContentAsk, { results }: ContentParts): Promise<StoredPart | null> {
  return job.resultKept && results !== null ? await results.open(job.id, range).catch(() => null) : null
}

async function vendorPart(job: ContentJob, ask: ContentAsk, parts: ContentParts): Promise<StoredPart> {
  const part = job.resultUrl === null ? null : await partAt(job.resultUrl, job, ask, parts)
  if (part !== null) return part
  const fresh = await parts.renew(job).catch((error: unknown) => {
    throw publicError(error)
  })
  const renewed = fresh === null ? null : await partAt(fresh, job, ask, parts)
  if (renewed !== null) return renewed
  throw new GatewayError("upstream_error", "the vendor no longer has this result")
}

/** How addresses answer that have expired: some stores call a signature that has run out a bad request. */
const expired: readonly number[] = [400, 401, 403, 404, 410]

/** Null where the address is not good any more. */
async function partAt(
  address: string,
  job: ContentJob,
  ask: ContentAsk,
  parts: ContentParts,
): Promise<StoredPart | null> {
  const { answerMs, silenceMs } = parts.limits ?? contentLimits
  const upstream = new AbortController()
  const signal = AbortSignal.any([ask.signal, upstream.signal])
  const late = setTimeout(() => upstream.abort(), answerMs)
  try {
    const response = await openFor({ ...ask, address, signal }, job, parts)
    const part = readPart(response, (body) => passOn(body, silenceMs, () => upstream.abort()))
    const isFlowing = typeof part === "object" && part.body !== null
    if (!isFlowing) upstream.abort()
    if (typeof part === "object") return part
    if (part === "expired") return null
    throw new GatewayError("upstream_error", "the vendor's address of this result does not give it", {
      internal: `it answers ${response.status}, ${response.headers.get("content-type")}`,
    })
  } catch (error) {
    throw ask.signal.aborted ? error : publicError(error)
  } finally {
    clearTimeout(late)
  }
}

type Where = Pick<ResultAsk, "address" | "method" | "range" | "signal">

/** Addresses that are signed for GET alone refuse HEAD: then it is a GET whose body nobody reads. */
async function openFor(where: Where, job: ContentJob, parts: ContentParts): Promise<Response> {
  const ask: ResultAsk = {
    ...where,
    credential: (url) => (job.resultNeedsCredential ? parts.credentialFor(job, url) : null),
    allowPrivate: parts.allowPrivateAddresses,
    // A result behind the credential is one more call of the vendor's own API.
    ...(job.resultNeedsCredential ? { home: job.route.baseUrl } : {}),
    ...(parts.resolve === undefined ? {} : { resolve: parts.resolve }),
  }
  const response = await openResult(ask)
  return ask.method === "HEAD" && response.status >= 400 ? openResult({ ...ask, method: "GET" }) : response
}

const returned = ["content-length", "content-range", "accept-ranges", "etag", "last-modified"] as const

/** Codings that the runtime undoes on its own, though nobody asked for one: lengths and ranges mean other bytes then. */
const coded = /^(gzip|x-gzip|deflate|br|zstd)$/i

type Pass = (body: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>

function readPart({ status, headers, body }: Response, pass: Pass): StoredPart | "expired" | "unusable" {
  if (expired.includes(status)) return "expired"
  const isCoded = coded.test(headers.get("content-encoding") ?? "")
  if (status !== 200 && status !== 416 && (status !== 206 || isCoded)) return "unusable"
  const passed: Record<string, string> = {}
  for (const name of returned) {
    const value = headers.get(name)
    if (value !== null && !isCoded) passed[name] = value
  }
  if (status === 416) {
    delete passed["content-length"]
    return { status, headers: passed, body: null }
  }
  passed["content-type"] = filmType(headers.get("content-type") ?? "")
  return { status, headers: passed, body: body === null ? null : pass(body) }
}

/** A vendor's word for what it sends, unless that would make a page of it. */
function filmType(type: string): string {
  return /^(video\/|[a-z]+\/octet-stream\b)/i.test(type) ? type : "application/octet-stream"
}

/** Reads on only when the caller wants more; breaks off, so that the caller's connection does too, where nothing comes. */
function passOn(body: ReadableStream<Uint8Array>, silenceMs: number, abort: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(sink) {
        const silent = setTimeout(abort, silenceMs)
        try {
          const { done, value } = await reader.read()
          if (done) sink.close()
          else sink.enqueue(value)
        } finally {
          clearTimeout(silent)
        }
      },
      cancel: abort,
    },
    { highWaterMark: 0 },
  )
}

function publicError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const internal = error instanceof Error ? error.message : String(error)
  if (error instanceof Forbidden)
    return new GatewayError("upstream_error", "the vendor's address of this result may not be fetched", { internal })
  return new GatewayError("upstream_unreachable", "the vendor's address of this result cannot be reached", { internal })
}
