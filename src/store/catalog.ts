import type { Plan } from "../core/catalog.ts"
import { listModels, type ModelRow } from "./models.ts"
import { listPlans } from "./plans.ts"
import type { Reader } from "./schema.ts"
import { listSettings, type StoredSettings } from "./settings.ts"
import { listUpstreams, type UpstreamRow } from "./upstreams.ts"
import { catalogVersion } from "./versions.ts"

/** Everything routing needs, as it was at one moment. */
export interface CatalogRows {
  readonly version: number
  readonly plans: readonly Plan[]
  readonly upstreams: readonly UpstreamRow[]
  readonly models: readonly ModelRow[]
  readonly settings: StoredSettings
}

/** One consistent read. Inside a transaction that holds `lockCatalog` it shows that transaction's own edits. */
export function readCatalog(db: Reader): Promise<CatalogRows> {
  if (db.isTransaction) return readAll(db)
  return db.transaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute(readAll)
}

async function readAll(db: Reader): Promise<CatalogRows> {
  return {
    version: await catalogVersion(db),
    plans: await listPlans(db),
    upstreams: await listUpstreams(db),
    models: await listModels(db),
    settings: await listSettings(db),
  }
}
