import type { Snapshot } from "../core/catalog.ts"
import type { Events } from "../core/events.ts"
import type { Vault } from "../lib/seal.ts"
import { readCatalog } from "../store/catalog.ts"
import type { Store } from "../store/db.ts"
import { catalogVersion } from "../store/versions.ts"
import { compile } from "./compile.ts"
import { CatalogError, describe } from "./problem.ts"

/** How often an instance asks whether the catalog has changed. */
const lookEveryMs = 500

export interface LiveCatalog {
  /** The snapshot to serve a new request by. */
  current(): Snapshot
  /** Looks for a change now. */
  refresh(): Promise<void>
  stop(): Promise<void>
}

export interface LiveParts {
  readonly store: Store
  readonly vault: Vault
  readonly events: Events
  /** Called after a new snapshot took effect. */
  onChange(snapshot: Snapshot): void
}

/** Keeps the newest usable snapshot at hand. While the database is away, or holds what cannot be served, the last good one stays. */
export async function openLiveCatalog(parts: LiveParts): Promise<LiveCatalog> {
  const { store, vault, events } = parts
  const first = compile(await readCatalog(store.db), vault)
  if (!first.usable) throw new CatalogError(first.problems)
  let snapshot = first.snapshot
  let seen = snapshot.version
  let away = false
  let stopped = false
  let looking: Promise<void> | null = null
  let timer = setTimeout(tick, lookEveryMs)
  events.catalogLoaded(seen)

  async function look(): Promise<void> {
    try {
      const version = await catalogVersion(store.db)
      if (away) events.databaseBack()
      away = false
      if (version !== seen) await load()
    } catch (error) {
      if (!away) events.databaseAway(error)
      away = true
    }
  }

  async function load(): Promise<void> {
    const rows = await readCatalog(store.db)
    seen = rows.version
    const compiled = compile(rows, vault)
    if (!compiled.usable) return events.catalogRejected(rows.version, compiled.problems.map(describe))
    snapshot = compiled.snapshot
    parts.onChange(snapshot)
    events.catalogLoaded(snapshot.version)
  }

  async function tick(): Promise<void> {
    looking ??= look()
    await looking
    looking = null
    if (!stopped) timer = setTimeout(tick, lookEveryMs)
  }

  return {
    current: () => snapshot,
    async refresh() {
      await looking
      await look()
    },
    async stop() {
      stopped = true
      clearTimeout(timer)
      await looking
    },
  }
}
