import type { Reading } from "../core/measured.ts"

/** Reads what is charged by out of an answer while its bytes pass. It never throws and keeps next to nothing of them. */
export interface Meter {
  push(chunk: Uint8Array): void
  /** The answer is over. */
  end(): Reading
  /** What an answer that is over says, as text, for counting where the upstream does not; absent where it says nothing. */
  produced?(): string
}
