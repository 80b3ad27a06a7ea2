import { type AdminApi, adminApi } from "../../src/admin/api.ts"
import type { AdminParts } from "../../src/admin/parts.ts"
import { applyConfig } from "../../src/catalog/apply.ts"
import { compile } from "../../src/catalog/compile.ts"
import { CatalogError } from "../../src/catalog/problem.ts"
import type { ConfigDocument } from "../../src/config/document.ts"
import type { Snapshot } from "../../src/core/catalog.ts"
import { newRequestId } from "../../src/lib/ids.ts"
import { openVault } from "../../src/lib/seal.ts"
import { readCatalog } from "../../src/store/catalog.ts"
import type { Store } from "../../src/store/db.ts"

export const adminToken = "admin-token-canary-0123456789"
export const vault = openVault("test-master-key-0123456789abcdef0123456789")

/** The back-office API on a real socket. */
export interface BackOffice {
  readonly url: string
  readonly parts: AdminParts
  /** With the admin token. */
  readonly headers: Readonly<Record<string, string>>
  /** Asks with the admin token, unless the headers given say otherwise. */
  ask(path: string, init?: RequestInit): Promise<Response>
  /** Posts JSON; headers given come on top of the usual ones. */
  send(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>
  /** The JSON of an answer that must be 200. */
  read<Body = Record<string, unknown>>(path: string): Promise<Body>
  /** Applies a document and serves by the result. */
  apply(document: ConfigDocument): Promise<void>
  stop(): Promise<void>
}

export async function openBackOffice(
  store: Store,
  document: ConfigDocument,
  overrides: Partial<AdminParts> = {},
): Promise<BackOffice> {
  let snapshot: Snapshot
  const apply = async (change: ConfigDocument): Promise<void> => {
    await applyConfig(store, vault, change, { prune: false })
    const compiled = compile(await readCatalog(store.db), vault)
    if (!compiled.usable) throw new CatalogError(compiled.problems)
    snapshot = compiled.snapshot
  }
  await apply(document)
  const parts: AdminParts = {
    store,
    snapshot: () => snapshot,
    inFlight: () => 0,
    balanceChanged() {},
    circuit: () => "closed",
    adminToken,
    version: "1.2.3",
    ...overrides,
  }
  const { url, stop } = serveApi(adminApi(parts))
  const headers = { authorization: `Bearer ${adminToken}` }
  const ask = (path: string, init: RequestInit = {}): Promise<Response> => fetch(url + path, { headers, ...init })
  return {
    url,
    parts,
    headers,
    ask,
    send(path, body, more = {}) {
      const text = typeof body === "string" ? body : JSON.stringify(body)
      const all = { ...headers, "content-type": "application/json", ...more }
      return fetch(url + path, { method: "POST", headers: all, body: text })
    },
    async read<Body>(path: string) {
      const response = await ask(path)
      const text = await response.text()
      if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${text}`)
      return JSON.parse(text) as Body
    },
    apply,
    stop,
  }
}

function serveApi(api: AdminApi): { url: string; stop(): Promise<void> } {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => api(request, newRequestId()) })
  return { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) }
}

/** The unified envelope of a refusal; fails where the request id is not the same in all three places. */
export async function refusalOf(response: Response): Promise<{ status: number; code: string; message: string }> {
  const { error, request_id } = (await response.json()) as {
    error: { type: string; code: string; message: string; request_id: string }
    request_id: string
  }
  const header = response.headers.get("x-request-id")
  if (header === null || error.request_id !== header || request_id !== header) {
    throw new Error(`request ids differ: ${header}, ${error.request_id}, ${request_id}`)
  }
  return { status: response.status, code: error.code, message: error.message }
}
