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

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name
  return `${code}: ${error.message}`
}
