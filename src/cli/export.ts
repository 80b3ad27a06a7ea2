import { exportConfig } from "../catalog/export.ts"
import type { Settings } from "../settings.ts"
import { StoreLockedError } from "../store/errors.ts"
import { askToExport } from "./control.ts"
import { openHouse } from "./house.ts"

/** `tollgate export`: prints the database as a config file. */
export async function exportDatabase(settings: Settings): Promise<void> {
  process.stdout.write(await exported(settings))
}

async function exported(settings: Settings): Promise<string> {
  try {
    const house = await openHouse(settings)
    try {
      return await exportConfig(house.store)
    } finally {
      await house.store.close()
    }
  } catch (error) {
    if (!(error instanceof StoreLockedError)) throw error
    const text = await askToExport(settings.dataDir)
    if (text === null) throw error
    return text
  }
}
