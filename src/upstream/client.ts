import type { JsonValue } from "../core/json.ts"
import type { Reply, VendorCall } from "../core/vendor-job.ts"
import { textOf } from "../lib/bytes.ts"
import { Forbidden } from "./guard.ts"

/** No HTTP answer came: refused, reset, name not found, TLS trouble. `reason` is for operators. */
export class Unreachable extends Error {
  readonly reason: string
  /** Nothing of the request can have reached the upstream, because there was no connection to send it on. */
  readonly unsent: boolean

  constructor(reason: string, cause: unknown) {
    super(`upstream unreachable: ${reason}`, { cause })
    this.name = "Unreachable"
    this.reason = reason
    this.unsent = withoutConnection.test(reason)
  }
}

/** What the runtime calls failures to connect: refused, no such host, no way there, no trust in the certificate. */
const withoutConnection =
  /^(ConnectionRefused|ECONNREFUSED|FailedToOpenSocket|ENOTFOUND|EAI_\w+|DNS\w*|EHOSTUNREACH|ENETUNREACH|CERT_\w+|ERR_TLS_\w+|UNABLE_TO_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNKNOWN_CERTIFICATE\w*):/

/** Bytes to send: in one piece, or as pieces that follow each other. */
export type Payload = Uint8Array | readonly Uint8Array[]

export interface UpstreamRequest {
  readonly url: string
  readonly headers: Record<string, string>
  readonly body: Payload
  readonly signal: AbortSignal
}

/**
 * Posts bytes to a vendor: the only place of the gateway that reaches out.
 * Redirects are not followed, because the credential was meant for this address alone. The runtime's own
 * time limit is off: ours is carried by the signal.
 */
export async function post(request: UpstreamRequest): Promise<Response> {
  try {
    return await fetch(request.url, {
      method: "POST",
      ...sending(request),
      signal: request.signal,
      redirect: "manual",
      timeout: false,
    } as BunFetchRequestInit)
  } catch (error) {
    if (request.signal.aborted) throw error
    throw new Unreachable(reasonOf(error), error)
  }
}

/** How much of a payload in pieces is handed over at a time. */
const sliceBytes = 256 * 1024

/**
 * The runtime copies a body it is given whole, at once; pieces are streamed to it slice by slice instead, under the exact
 * length, so that a large body is neither doubled in memory nor copied while others wait.
 */
function sending({ body, headers }: UpstreamRequest) {
  if (body instanceof Uint8Array) return { body, headers }
  const length = body.reduce((sum, piece) => sum + piece.length, 0)
  const slices = slicesOf(body)
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(sink) {
        const { done, value } = slices.next()
        if (done) sink.close()
        else sink.enqueue(value)
      },
    },
    { highWaterMark: 0 },
  )
  return { body: stream, headers: { ...headers, "content-length": String(length) } }
}

function* slicesOf(pieces: readonly Uint8Array[]): Generator<Uint8Array, void> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += sliceBytes) yield piece.subarray(at, at + sliceBytes)
  }
}

/** The status of a plain GET, to see whether an address and a credential are right. */
export async function probe(url: string, headers: Record<string, string>, signal: AbortSignal): Promise<number> {
  const response = await fetch(url, { headers, signal, redirect: "manual" })
  await response.body?.cancel()
  return response.status
}

export interface VendorCallOptions {
  /** Where its host must be, if that was checked. */
  readonly address?: string
  /** On a connection of its own: the runtime sends a call again by itself when one that was kept open turns out to be dead. */
  readonly once?: boolean
}

/** One call of a vendor's job protocol, with its reply read to the end. */
export async function callVendor(
  call: VendorCall,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  { address, once = false }: VendorCallOptions = {},
): Promise<VendorReply> {
  let response: Response
  try {
    response = await fetchAt(new URL(call.url), address ?? null, {
      method: call.method,
      headers: { ...headers, ...call.headers },
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      signal,
      redirect: "manual",
      ...(once ? { keepalive: false } : {}),
    })
  } catch (error) {
    if (signal.aborted) throw error
    throw new Unreachable(reasonOf(error), error)
  }
  const bytes = await readUpTo(response, mostReplyBytes)
  const text = textOf(bytes)
  return {
    bytes,
    headers: response.headers,
    reply: {
      status: response.status,
      headers: response.headers.toJSON(),
      json: parsed(text),
      text: text.slice(0, longestReplyText),
    },
  }
}

export interface VendorReply {
  readonly reply: Reply
  readonly headers: Headers
  readonly bytes: Uint8Array
}

/**
 * Fetches a URL from one address of its host, without asking for the name again: a name that was checked may resolve
 * differently a moment later. The certificate must still be the name's.
 */
export function fetchAt(url: URL, address: string | null, init: BunFetchRequestInit): Promise<Response> {
  const host = url.hostname.replace(/^\[|\]$/g, "")
  // The runtime's own time limit is off: ours is carried by the signal.
  if (address === null || address === host) return fetch(url, { timeout: false, ...init } as BunFetchRequestInit)
  const at = new URL(url)
  at.hostname = address.includes(":") ? `[${address}]` : address
  return fetch(at, {
    timeout: false,
    ...init,
    headers: { ...(init.headers as Record<string, string>), host: url.host },
    tls: { ...init.tls, serverName: host },
  } as BunFetchRequestInit)
}

const mostReplyBytes = 64 * 1024 * 1024
const longestReplyText = 2000

/** The whole of a body; Forbidden where it is longer than the limit. */
export async function readUpTo(response: Response, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > limit) throw new Forbidden(`an answer of more than ${limit} bytes is not read`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function parsed(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return null
  }
}

/** What went wrong with a fetch, for operators. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name
  return `${code}: ${error.message}`
}
