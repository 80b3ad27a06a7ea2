import type { StoryParts } from "../admission/story.ts"
import type { Snapshot, Upstream } from "../core/catalog.ts"
import type { ViewParts } from "../routing/view.ts"
import type { Store } from "../store/db.ts"
import type { Credential } from "../upstream/credentials.ts"
import type { ContentLinks } from "./links.ts"
import type { ResultStore } from "./results.ts"

/** What video jobs use of the house. */
export interface VideoParts extends StoryParts, ViewParts {
  readonly store: Store
  /** Names this instance among those that share the work. */
  readonly instanceId: string
  readonly links: ContentLinks
  /** Keeps copies of results; null: the vendor's own are used. */
  readonly results: ResultStore | null
  /** Where callers reach this service; null: where they called it. */
  readonly publicUrl: string | null
  readonly allowPrivateAddresses: boolean
  snapshot(): Snapshot
  credential(upstream: Upstream): Credential
  /** Recognises a credential without keeping it. */
  digest(secret: string): string
  /** False: nothing is charged. */
  readonly charges: boolean
  /** An account's balance was changed by a job. */
  balanceChanged(accountId: string): void
}

export function mayFetchPrivate(parts: Pick<VideoParts, "snapshot" | "allowPrivateAddresses">): boolean {
  return parts.allowPrivateAddresses || parts.snapshot().allowPrivateAddresses
}
