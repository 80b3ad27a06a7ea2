import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openGateway } from "../../src/app.ts"
import { type Applied, applyConfig } from "../../src/catalog/apply.ts"
import type { ConfigDocument, ModelConfig, RouteConfig, UpstreamConfig } from "../../src/config/document.ts"
import type { CircuitState, Events } from "../../src/core/events.ts"
import type { ResultsTarget } from "../../src/core/results-target.ts"
import type { AttemptRecord, Story } from "../../src/core/story.ts"
import type { TokenUsage } from "../../src/core/usage.ts"
import { listen } from "../../src/http/server.ts"
import { openVault } from "../../src/lib/seal.ts"
import { type DatabaseTarget, openStore, type Store } from "../../src/store/db.ts"

/** A gateway on a real socket with a database of its own. */
export interface TestGateway {
  readonly url: string
  /** The API key of the account "acme". */
  readonly key: string
  readonly store: Store
  /** Every request that ended, in order. */
  readonly stories: ToldStory[]
  readonly failedAttempts: AttemptRecord[]
  readonly circuits: { upstream: string; state: CircuitState }[]
  readonly complaints: unknown[]
  readonly inFlight: number
  apply(document: ConfigDocument): Promise<Applied>
  /** POSTs a chat completion; an object is sent as JSON, bytes and text as they are. */
  chat(body: unknown, init?: RequestInit): Promise<Response>
  /** The story of a request once it has ended. */
  story(response: Response): Promise<ToldStory>
  drain(): Promise<void>
  stop(): Promise<void>
}

/** A story with its tokens at hand. */
export interface ToldStory extends Story {
  readonly usage: TokenUsage | null
}

export const testKey = "sk-test-acme-0123456789"
export const testAdminToken = "admin-token-0123456789"
export const testMasterKey = "test-master-key-0123456789abcdef0123456789"

export interface GatewayOptions {
  /** Whether results may be fetched from this machine, where the simulator is; true unless said. */
  readonly allowPrivateAddresses?: boolean
  /** Where copies of videos are kept; nowhere unless said. */
  readonly results?: ResultsTarget
  /** Where callers reach it, as links say; where they called it unless said. */
  readonly publicUrl?: string
}

export async function startGateway(
  document: ConfigDocument,
  database?: DatabaseTarget,
  options: GatewayOptions = {},
): Promise<TestGateway> {
  const dataDir = mkdtempSync(join(tmpdir(), "tollgate-test-"))
  const store = await openStore(database ?? { kind: "sqlite", file: join(dataDir, "tollgate.db") })
  const vault = openVault(testMasterKey)
  const recorded = recordEvents()
  await applyConfig(store, vault, withAccount(document), { prune: false })
  const gateway = await openGateway({
    store,
    vault,
    events: recorded.events,
    dataDir,
    adminToken: testAdminToken,
    allowPrivateAddresses: options.allowPrivateAddresses ?? true,
    results: options.results ?? null,
    publicUrl: options.publicUrl ?? null,
  })
  const listening = listen("127.0.0.1", 0, gateway.handle)
  return {
    url: listening.url,
    key: testKey,
    store,
    ...recorded,
    get inFlight() {
      return gateway.inFlight
    },
    async apply(change) {
      const applied = await applyConfig(store, vault, change, { prune: false })
      await gateway.refresh()
      return applied
    },
    chat: (body, init = {}) =>
      fetch(`${listening.url}/v1/chat/completions`, {
        method: "POST",
        body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
        ...init,
        headers: {
          authorization: `Bearer ${testKey}`,
          "content-type": "application/json",
          ...(init.headers as Record<string, string>),
        },
      }),
    async story(response) {
      const id = response.headers.get("x-request-id")
      return eventually(() => recorded.stories.find(({ requestId }) => requestId === id))
    },
    drain: gateway.drain,
    async stop() {
      await listening.stop(true)
      await gateway.close()
      await store.close()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Adds the account "acme" with money and a key, unless the document has accounts of its own. */
function withAccount(document: ConfigDocument): ConfigDocument {
  if (document.accounts !== undefined) return document
  return {
    plans: [{ name: "default", concurrency: 0, models: ["*"], priceMultiplier: "1" }],
    ...document,
    accounts: [
      { name: "acme", plan: "default", concurrency: null, balance: "100", keys: [{ name: "test", key: testKey }] },
    ],
  }
}

function recordEvents() {
  const stories: ToldStory[] = []
  const failedAttempts: AttemptRecord[] = []
  const circuits: { upstream: string; state: CircuitState }[] = []
  const complaints: unknown[] = []
  const events: Events = {
    attemptFailed: (_, attempt) => failedAttempts.push(attempt),
    requestEnded: (story) => stories.push({ ...story, usage: story.measured?.tokens ?? null }),
    circuitChanged: (upstream, state) => circuits.push({ upstream, state }),
    catalogLoaded() {},
    catalogRejected: (version, problems) => complaints.push({ version, problems }),
    databaseAway: (error) => complaints.push(error),
    databaseBack() {},
    limitsDegraded: (away, why) => complaints.push({ away, why }),
    journaling: (active, why) => complaints.push({ active, why }),
    chargesStuck: (stuck, why) => complaints.push({ stuck, why }),
    chargeUnposted: (record, why) => complaints.push({ record, why }),
    recordsDropped: (count) => complaints.push({ count }),
    journalDamaged: (problem) => complaints.push(problem),
    oddJobStatus: (vendor, word) => complaints.push({ vendor, word }),
    jobEnded() {},
    internalError: (_, error) => complaints.push(error),
  }
  return { stories, failedAttempts, circuits, complaints, events }
}

/** An upstream of vendor "openai" unless said otherwise. */
export function upstream(name: string, baseUrl: string, more: Partial<UpstreamConfig> = {}): UpstreamConfig {
  return {
    name,
    vendor: "openai",
    baseUrl,
    apiKeys: [`credential-of-${name}`],
    headers: {},
    timeouts: {},
    concurrency: 0,
    settings: {},
    ...more,
  }
}

/** A free model; routes are upstream names in order of priority, or whole routes. */
export function model(
  name: string,
  routes: readonly (string | Partial<RouteConfig>)[],
  more: Partial<ModelConfig> = {},
): ModelConfig {
  const whole = routes.map((route, position) => {
    const fields = typeof route === "string" ? { upstream: route } : route
    return { upstream: "", model: `${name}-upstream`, priority: position + 1, weight: 100, ...fields }
  })
  return { name, price: "free", tokenizer: null, endpoints: null, routes: whole, ...more }
}

/** Waits until a check gives something; fails after `patienceMs`. */
export async function eventually<T>(check: () => T | undefined | null | false, patienceMs = 5000): Promise<T> {
  const until = performance.now() + patienceMs
  for (;;) {
    const value = check()
    if (value !== undefined && value !== null && value !== false) return value
    if (performance.now() > until) throw new Error(`not so within ${patienceMs} ms: ${check}`)
    await Bun.sleep(5)
  }
}

/** A header that an upstream received; names are compared without case. */
export function headerOf(
  call: { readonly headers: readonly (readonly [string, string])[] },
  name: string,
): string | undefined {
  return call.headers.find(([given]) => given.toLowerCase() === name)?.[1]
}
