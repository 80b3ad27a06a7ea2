import type { JsonValue } from "../core/json.ts"
import type { Reply, VendorCall } from "../core/vendor-job.ts"
import { textOf } from "../lib/bytes.ts"
import { version } from "../version.ts"
import { Forbidden, refusePrivate } from "./guard.ts"

/** No HTTP answer came: refused, reset, name not found, TLS trouble. `reason` is for operators. */
export class Unreachable extends Error {
  readonly reason: string

  constructor(reason: string, cause: unknown) {
    super(`upstream unreachable: ${reason}`, { cause })
    this.name = "Unreachable"
    this.reason = reason
  }
}

export interface UpstreamRequest {
  readonly url: string
  readonly headers: Record<string, string>
  readonly body: Uint8Array
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
      headers: request.headers,
      body: request.body,
      signal: request.signal,
      redirect: "manual",
      timeout: false,
    } as BunFetchRequestInit)
  } catch (error) {
    if (request.signal.aborted) throw error
    throw new Unreachable(reasonOf(error), error)
  }
}

/** The status of a plain GET, to see whether an address and a credential are right. */
export async function probe(url: string, headers: Record<string, string>, signal: AbortSignal): Promise<number> {
  const response = await fetch(url, { headers, signal, redirect: "manual" })
  await response.body?.cancel()
  return response.status
}

/** One call of a vendor's job protocol, with its reply read to the end. */
export async function callVendor(
  call: VendorCall,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<VendorReply> {
  let response: Response
  try {
    response = await fetch(call.url, {
      method: call.method,
      headers: { ...headers, ...call.headers },
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      signal,
      redirect: "manual",
      timeout: false,
    } as BunFetchRequestInit)
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
): Promise<Downloaded> {
  let url = new URL(address)
  for (let hop = 0; hop <= mostRedirects; hop++) {
    await refusePrivate(url, allowPrivate)
    const response = await fetch(url, { redirect: "manual", signal, headers: { "user-agent": `tollgate/${version}` } })
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
