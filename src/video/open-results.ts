import type { ResultsTarget } from "../core/results-target.ts"
import { openBucket } from "../upstream/bucket.ts"
import type { ResultStore } from "./results.ts"
import { bucketResults } from "./results-bucket.ts"
import { folderResults } from "./results-folder.ts"

/** Opens the place where copies of results are kept; null: none are. */
export async function openResults(target: ResultsTarget | null): Promise<ResultStore | null> {
  if (target === null) return null
  return target.kind === "folder" ? folderResults(target.path) : bucketResults(openBucket(target))
}
