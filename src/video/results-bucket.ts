import type { Bucket } from "../upstream/bucket.ts"
import { nameOf, partOf, type ResultStore } from "./results.ts"

/** Keeps copies in a bucket. */
export function bucketResults(bucket: Bucket): ResultStore {
  const entryOf = (jobId: string): string => `${nameOf(jobId)}.mp4`
  return {
    put: (jobId, body, type) => bucket.write(entryOf(jobId), body, type),
    async open(jobId, range) {
      const name = entryOf(jobId)
      const kept = await bucket.stat(name)
      return kept === null ? null : partOf(kept, range, ({ start, end }) => bucket.read(name, start, end))
    },
    delete: (jobId) => bucket.remove(entryOf(jobId)),
  }
}
