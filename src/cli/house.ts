import { mkdirSync } from "node:fs"
import { loadMasterKey, openVault, type Vault } from "../lib/seal.ts"
import type { Settings } from "../settings.ts"
import { openStore, type Store } from "../store/db.ts"

/** The database of this installation and the vault that opens its secrets. */
export interface House {
  readonly store: Store
  readonly vault: Vault
}

export async function openHouse(settings: Settings): Promise<House> {
  mkdirSync(settings.dataDir, { recursive: true, mode: 0o700 })
  const store = await openStore(settings.database)
  try {
    return { store, vault: openVault(loadMasterKey(settings.dataDir, settings.masterKey ?? undefined)) }
  } catch (error) {
    await store.close()
    throw error
  }
}
