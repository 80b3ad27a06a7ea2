import type { FilePlan } from "./protocols/files.ts"
import type { ImageJob } from "./protocols/image-jobs/job.ts"

/** What a vendor knows from one call to the next, by id. */
export interface VendorMemory {
  readonly jobs: Map<string, ImageJob>
  readonly files: Map<string, FilePlan>
}

export const maxRemembered = 20_000

export function emptyMemory(): VendorMemory {
  return { jobs: new Map(), files: new Map() }
}

/** Keeps a thing; the oldest of very many is forgotten. */
export function remember<T>(things: Map<string, T>, id: string, thing: T): void {
  const [oldest] = things.keys()
  if (things.size >= maxRemembered && oldest !== undefined) things.delete(oldest)
  things.set(id, thing)
}
