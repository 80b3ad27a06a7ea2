import type { JsonValue } from "../core/json.ts"
import type { Reply, VendorCall } from "../core/vendor-job.ts"
import { textOf } from "../lib/bytes.ts"
import { Forbidden, type Resolve, refusePrivate } from "./guard.ts"
import { strangerHeaders } from "./headers.ts"

/** No HTTP answer came: refused, reset, name not found, TLS trouble. `reason` is for operators. */
export class Unreachable extends Error {
  readonly reason: string

  constructor(reason: string, cause: unknown) {
    super(`upstream unreachable: ${reason}`, { cause })
    this.name = "Unreachable"
    this.reason = reason
  }
}

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

/** One call of a vendor's job protocol, with its reply read to the end; `address` is where its host must be, if that was checked. */
export async function callVendor(
  call: VendorCall,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  address: string | null = null,
): Promise<VendorReply> {
  let response: Response
  try {
    response = await fetchAt(new URL(call.url), address, {
      method: call.method,
      headers: { ...headers, ...call.headers },
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      signal,
      redirect: "manual",
      timeout: false,
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

/** Redirects followed from a result's address, each checked anew. */
const mostRedirects = 3

/** Fetches a result from an address that came out of a reply: no credential goes along, and only public addresses are asked. */
export async function download(
  address: string,
  limit: number,
  allowPrivate: boolean,
  signal: AbortSignal,
  resolve?: Resolve,
): Promise<Downloaded> {
  let url = new URL(address)
  for (let hop = 0; hop <= mostRedirects; hop++) {
    const addresses = await refusePrivate(url, allowPrivate, resolve)
    const response = await fetchFirst(url, addresses, signal)
    const location = response.status >= 300 && response.status < 400 ? response.headers.get("location") : null
    if (location === null) {
      if (!response.ok) throw new Forbidden(`the result's address answers ${response.status}`)
      return { bytes: await readUpTo(response, limit), type: response.headers.get("content-type") ?? "" }
    }
    await response.body?.cancel()
    url = new URL(location, url)
  }
  throw new Forbidden(`the result's address redirects more than ${mostRedirects} times`)
}

/** Asks the first of a host's addresses that can be reached. */
async function fetchFirst(url: URL, addresses: readonly string[], signal: AbortSignal): Promise<Response> {
  let trouble: unknown
  for (const address of addresses) {
    try {
      return await fetchAt(url, address, {
        redirect: "manual",
        signal,
        headers: strangerHeaders,
        // Connections of different names to one address must not be mixed up.
        keepalive: false,
      })
    } catch (error) {
      trouble = error
      if (signal.aborted) break
    }
  }
  throw trouble
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

export interface Downloaded {
  readonly bytes: Uint8Array
  readonly type: string
}

const mostReplyBytes = 64 * 1024 * 1024
const longestReplyText = 2000

async function readUpTo(response: Response, limit: number): Promise<Uint8Array> {
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

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name
  return `${code}: ${error.message}`
}
