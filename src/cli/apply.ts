import type { Applied } from "../catalog/apply.ts"
import type { Environment, Settings } from "../settings.ts"
import { StoreConflict, StoreLockedError } from "../store/errors.ts"
import { applyFile, readConfigFile, refusal } from "./config-file.ts"
import { askToApply } from "./control.ts"
import { openHouse } from "./house.ts"

/** `tollgate apply FILE`: writes a config file into the database. */
export async function apply(file: string, prune: boolean, settings: Settings, env: Environment): Promise<void> {
  const source = readConfigFile(file, env)
  try {
    const house = await openHouse(settings)
    try {
      report(await applyFile(source, house, prune))
    } finally {
      await house.store.close()
    }
  } catch (error) {
    if (!(error instanceof StoreLockedError)) throw error
    const reply = await askToApply(settings.dataDir, { document: source.document, prune })
    if (reply === null) throw error
    if ("problems" in reply) throw refusal(source, reply.problems)
    if ("conflict" in reply) throw new StoreConflict(reply.conflict)
    if ("failed" in reply) throw new Error(reply.failed)
    report(reply.applied)
  }
}

function report({ changes, unchanged }: Applied): void {
  for (const change of changes) console.log(change)
  console.log(`${changes.length} changed, ${unchanged} unchanged`)
}
