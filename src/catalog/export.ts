import type { ConfigDocument } from "../config/document.ts"
import { placeSecrets } from "../config/secret-names.ts"
import { writeConfig } from "../config/write.ts"
import { isObject } from "../core/json.ts"
import { dollarsOf } from "../lib/money.ts"
import { listAccounts } from "../store/accounts.ts"
import { readCatalog } from "../store/catalog.ts"
import { inTransaction, type Store } from "../store/db.ts"
import { listKeys } from "../store/keys.ts"
import { balanceOf } from "../store/ledger.ts"
import { listPeople } from "../store/people.ts"

/** The database as a config file; every secret is a `${NAME}` to be set in the environment before it is applied. */
export async function exportConfig(store: Store): Promise<string> {
  const { document, placeholders } = placeSecrets(await readDocument(store))
  return writeConfig(document, placeholders)
}

/** What the database holds as a document. Secrets cannot be read back, so their places are empty. */
export function readDocument(store: Store): Promise<ConfigDocument> {
  return inTransaction(store, async (trx) => {
    const rows = await readCatalog(trx)
    const keys = Map.groupBy(await listKeys(trx), (key) => key.account)
    const accounts = []
    for (const { id, name, plan, concurrency } of await listAccounts(trx)) {
      const balance = dollarsOf(await balanceOf(trx, id))
      const own = (keys.get(name) ?? []).filter((key) => key.revokedAt === null)
      accounts.push({
        name,
        plan,
        concurrency,
        balance: balance === "0" ? null : balance,
        keys: own.map((key) => ({ name: key.name, key: "" })),
      })
    }
    const { timeouts, cors_origins: corsOrigins, allow_private_addresses: allowPrivateAddresses } = rows.settings
    const kept = isObject(rows.settings.retention) ? rows.settings.retention.requests : undefined
    return {
      upstreams: rows.upstreams.map(({ id: _, credentials, ...upstream }) => ({
        ...upstream,
        apiKeys: credentials.map(() => ""),
      })),
      models: rows.models.map(({ id: _id, createdAt: _createdAt, routes, ...model }) => ({
        ...model,
        routes: routes.map(({ upstreamModel, ...route }) => ({ ...route, model: upstreamModel })),
      })),
      plans: rows.plans,
      accounts,
      people: (await listPeople(trx)).map(({ email, role, account }) => ({ email, password: "", role, account })),
      ...(isObject(timeouts) ? { timeouts } : {}),
      ...(Array.isArray(corsOrigins) ? { corsOrigins: corsOrigins as readonly string[] } : {}),
      ...(typeof allowPrivateAddresses === "boolean" ? { allowPrivateAddresses } : {}),
      ...(typeof kept === "number" || kept === null ? { retention: { requests: kept } } : {}),
    }
  })
}
