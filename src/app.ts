import { join } from "node:path"
import { adminApi } from "./admin/api.ts"
import { keyDirectory } from "./auth/key-directory.ts"
import { openBalances } from "./billing/balances.ts"
import { openJournal } from "./billing/journal.ts"
import { type Ledger, noLedger, openLedger } from "./billing/ledger.ts"
import { sweepRequests } from "./billing/retention.ts"
import { workerTokenCounter } from "./billing/tokens.ts"
import { openLiveCatalog } from "./catalog/live.ts"
import type { Snapshot } from "./core/catalog.ts"
import type { Events } from "./core/events.ts"
import type { ResultsTarget } from "./core/results-target.ts"
import { edge } from "./http/edge.ts"
import { lifecycle } from "./http/lifecycle.ts"
import { modelPages } from "./http/model-pages.ts"
import { newId } from "./lib/ids.ts"
import type { Vault } from "./lib/seal.ts"
import type { Limiter } from "./limits/limiter.ts"
import { memoryLimiter } from "./limits/memory.ts"
import { redisLimiter } from "./limits/redis.ts"
import type { RelayParts } from "./relay/relay.ts"
import { repeatBudget } from "./routing/repeat-budget.ts"
import { upstreamLoad } from "./routing/upstream-load.ts"
import type { Store } from "./store/db.ts"
import { isUnavailable } from "./store/errors.ts"
import { findKey } from "./store/keys.ts"
import { balancesOf } from "./store/ledger.ts"
import { postSettlements } from "./store/settlements.ts"
import { credentialPools } from "./upstream/credentials.ts"
import { upstreamHealth } from "./upstream/health.ts"
import { version } from "./version.ts"
import { contentLinks } from "./video/links.ts"
import { openResults } from "./video/open-results.ts"
import type { VideoParts } from "./video/parts.ts"
import { openPoller } from "./video/poller.ts"
import { videoApi } from "./video/videos.ts"

/** A running gateway, without its sockets. */
export interface Gateway {
  handle(request: Request): Response | Promise<Response>
  snapshot(): Snapshot
  /** Looks for a changed catalog now instead of at the next turn. */
  refresh(): Promise<void>
  readonly inFlight: number
  /** Turns new requests away and waits for those in flight, up to the configured time; what is left then is cut. */
  drain(): Promise<void>
  close(): Promise<void>
}

export interface GatewayParts {
  readonly store: Store
  readonly vault: Vault
  readonly events: Events
  /** What `/metrics` answers; nothing where not given. */
  readonly metrics?: () => string
  /** Where the journal is kept. */
  readonly dataDir: string
  /** False: nothing is checked, charged or put on record. */
  readonly billing?: boolean
  /** Null: limits are held in process. */
  readonly redisUrl?: string | null
  readonly adminToken?: string | null
  /** Where copies of results are kept; null: nowhere. */
  readonly results?: ResultsTarget | null
  /** Where callers reach the service; null: where they call it. */
  readonly publicUrl?: string | null
  readonly allowPrivateAddresses?: boolean
}

/** How long cut requests have to be counted, which may first have to wake the counter, and to tell their callers. */
const farewellMs = 5000

/** The composition root: every part of the gateway is made and joined here. */
export async function openGateway(parts: GatewayParts): Promise<Gateway> {
  const { store, vault, events } = parts
  const now = () => performance.now()
  const keys = keyDirectory(vault.digest, (digest) => findKey(store.db, digest))
  const catalog = await openLiveCatalog({ store, vault, events, onChange: () => keys.forget() })
  const nameOf = (upstreamId: string): string =>
    [...catalog.current().upstreams.values()].find(({ id }) => id === upstreamId)?.name ?? upstreamId
  const counter = workerTokenCounter()
  const { limiter, close: closeLimiter } = openLimiter(parts)
  const books = await openBooks(parts)
  const sweep = sweepRequests(store, () => catalog.current().keepRequestsMs, events)
  const relay: RelayParts = {
    limiter,
    counter,
    ledger: books.ledger,
    health: upstreamHealth(now, (upstreamId, state) => events.circuitChanged(nameOf(upstreamId), state)),
    load: upstreamLoad(),
    budget: repeatBudget(now),
    credential: credentialPools(now),
    withoutStreamOptions: new Set(),
    running: new Set(),
    allowPrivateAddresses: parts.allowPrivateAddresses ?? false,
    events,
    snapshot: catalog.current,
  }
  const video: VideoParts = {
    store,
    instanceId: newId(),
    limiter,
    ledger: books.ledger,
    events,
    health: relay.health,
    load: relay.load,
    budget: relay.budget,
    links: contentLinks(vault),
    results: await openResults(parts.results ?? null),
    publicUrl: parts.publicUrl ?? null,
    allowPrivateAddresses: relay.allowPrivateAddresses,
    snapshot: catalog.current,
    credential: relay.credential,
    digest: vault.digest,
    charges: parts.billing ?? true,
    balanceChanged: books.balanceChanged,
  }
  const poller = await openPoller(video)
  const life = lifecycle()
  const models = modelPages(now)
  const admin = adminApi({
    store,
    snapshot: catalog.current,
    inFlight: (accountId) => relay.limiter.inFlight(accountId),
    circuit: (upstreamId) => relay.health.circuit(upstreamId).state,
    balanceChanged: books.balanceChanged,
    adminToken: parts.adminToken ?? null,
    version,
  })
  return {
    handle: edge({
      lifecycle: life,
      keys,
      relay,
      models,
      videos: videoApi(video),
      admin,
      events,
      metrics: parts.metrics ?? (() => ""),
      ping: store.ping,
      isUnavailable,
    }),
    snapshot: catalog.current,
    refresh: catalog.refresh,
    get inFlight() {
      return life.inFlight
    },
    async drain() {
      const drained = life.drain()
      const late = Bun.sleep(catalog.current().drainMs).then(() => "late" as const)
      if ((await Promise.race([drained, late])) !== "late") return
      for (const cut of [...relay.running]) cut()
      await Promise.race([drained, Bun.sleep(farewellMs)])
    },
    async close() {
      await poller.stop()
      await catalog.stop()
      await sweep.stop()
      counter.close()
      await books.close()
      await closeLimiter()
    },
  }
}

interface OpenBooks {
  readonly ledger: Ledger
  /** To be told of top-ups and the like, so that they count at once. */
  balanceChanged(accountId: string): void
  close(): Promise<void>
}

async function openBooks({ store, events, dataDir, billing = true }: GatewayParts): Promise<OpenBooks> {
  if (!billing) return { ledger: noLedger, balanceChanged() {}, close: async () => {} }
  const journal = await openJournal(join(dataDir, "journal"), (problem) => events.journalDamaged(problem))
  const balances = openBalances((accountIds) => balancesOf(store.db, accountIds))
  const ledger = openLedger({
    post: (records, options) => postSettlements(store, records, options),
    isUnavailable,
    journal,
    balances,
    events,
  })
  return {
    ledger,
    balanceChanged: (accountId) => balances.forget(accountId),
    async close() {
      await ledger.close()
      await journal.close()
    },
  }
}

function openLimiter({ redisUrl, events }: GatewayParts): { limiter: Limiter; close(): Promise<void> } {
  if (redisUrl === undefined || redisUrl === null) return { limiter: memoryLimiter(), close: async () => {} }
  const limiter = redisLimiter({
    url: redisUrl,
    instanceId: newId(),
    onDegraded: (away, why) => events.limitsDegraded(away, why),
  })
  return { limiter, close: () => limiter.close() }
}
