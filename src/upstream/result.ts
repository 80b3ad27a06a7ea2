import { fetchAt, readUpTo, reasonOf, Unreachable } from "./client.ts"
import { Forbidden, type Resolve, refusePrivate } from "./guard.ts"
import { strangerHeaders } from "./headers.ts"

/** Redirects followed from a result's address, each checked anew. */
const mostRedirects = 3

export interface ResultAsk {
  /** Came out of a vendor's reply or a caller's request: it is not trusted. */
  readonly address: string
  readonly method: "GET" | "HEAD"
  /** The value of a `range` header. */
  readonly range: string | null
  /** What goes to this address beside our name, the credential among it; null: nothing. Asked anew for each redirect. */
  credential(url: URL): Readonly<Record<string, string>> | null
  readonly allowPrivate: boolean
  /** The base URL that the operator gave the upstream: addresses of the same origin may be private ones, as the vendor's calls may. */
  readonly home?: string
  readonly signal: AbortSignal
  readonly resolve?: Resolve
}

/**
 * Opens a result, whatever status it answers with: only public addresses are asked, looked up once for each redirect.
 * Throws Forbidden where the address may not be fetched, Unreachable where nothing answers.
 */
export async function openResult(ask: ResultAsk): Promise<Response> {
  let url = addressOf(ask.address)
  for (let hop = 0; hop <= mostRedirects; hop++) {
    const response = await openOnce(url, ask)
    const location = response.status >= 300 && response.status < 400 ? response.headers.get("location") : null
    if (location === null) return response
    await response.body?.cancel()
    url = addressOf(location, url)
  }
  throw new Forbidden(`the result's address redirects more than ${mostRedirects} times`)
}

function addressOf(text: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw new Forbidden("the result's address is none")
  return new URL(text, base)
}

async function openOnce(url: URL, ask: ResultAsk): Promise<Response> {
  try {
    const isHome = ask.home !== undefined && url.origin === new URL(ask.home).origin
    const addresses = await refusePrivate(url, ask.allowPrivate || isHome, ask.resolve)
    ask.signal.throwIfAborted()
    const headers = {
      ...strangerHeaders,
      // Ranges and lengths are those of the file itself.
      "accept-encoding": "identity",
      ...ask.credential(url),
      ...(ask.range === null ? {} : { range: ask.range }),
    }
    return await fetchFirst(url, addresses, { method: ask.method, headers, signal: ask.signal })
  } catch (error) {
    if (error instanceof Forbidden || ask.signal.aborted) throw error
    throw new Unreachable(reasonOf(error), error)
  }
}

export interface Downloaded {
  readonly bytes: Uint8Array
  readonly type: string
}

/** Fetches the whole of a small result from an address that came out of a reply; no credential goes along. */
export async function download(
  address: string,
  limit: number,
  allowPrivate: boolean,
  signal: AbortSignal,
  resolve?: Resolve,
): Promise<Downloaded> {
  const ask = { address, method: "GET", range: null, credential: () => null, allowPrivate, signal } as const
  const response = await openResult(resolve === undefined ? ask : { ...ask, resolve })
  if (response.ok) return { bytes: await readUpTo(response, limit), type: response.headers.get("content-type") ?? "" }
  await response.body?.cancel()
  throw new Forbidden(`the result's address answers ${response.status}`)
}

type ResultInit = Pick<BunFetchRequestInit, "method" | "headers"> & { readonly signal: AbortSignal }

/** Asks the first of a host's addresses that can be reached. */
async function fetchFirst(url: URL, addresses: readonly string[], init: ResultInit): Promise<Response> {
  let trouble: unknown
  for (const address of addresses) {
    try {
      // Connections of different names to one address must not be mixed up.
      return await fetchAt(url, address, { ...init, redirect: "manual", keepalive: false })
    } catch (error) {
      trouble = error
      if (init.signal.aborted) break
    }
  }
  throw trouble
}
