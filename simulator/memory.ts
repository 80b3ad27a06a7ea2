import type { BehaviourOf, Fault, FileOptions } from "./behaviour.ts"

/** What was asked for, in terms that all vendors share. */
export interface JobAsk {
  readonly prompt: string
  readonly images: number
  /** The vendor's own concern, kept for its polls. */
  readonly asked: Readonly<Record<string, unknown>>
}

/** A job from its submit to the end of the simulator's memory. */
export interface ImageJob {
  readonly id: string
  readonly plan: BehaviourOf<"image_job">
  readonly ask: JobAsk
  readonly createdAt: Date
  /** Addresses or data URLs of the pictures. */
  readonly results: readonly string[]
  /** What is left of the faults that polls get. */
  readonly faults: Fault[]
  polls: number
  cancelled: boolean
  /** Over, whatever it still had to wait for. */
  finished: boolean
}

/** A result that can be fetched, and how the fetching goes. */
export interface FilePlan {
  readonly options: FileOptions
  /** Which picture it is. */
  readonly number: number
}

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
