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

/** What a video vendor was asked for, in terms that all vendors share. */
export interface VideoAsk {
  readonly prompt: string
  /** Length as asked, or the vendor's default. */
  readonly seconds: number
  /** The caller's own id of the job, where the vendor takes one. */
  readonly externalId?: string
  /** The vendor's own concern, kept for its polls. */
  readonly asked: Readonly<Record<string, unknown>>
}

/** A video job; its state is a matter of the clock, so that very many cost nothing while nobody asks. */
export interface VideoJob {
  readonly id: string
  /** Whose protocol it was submitted in. */
  readonly speaker: string
  /** The credential of its submit. */
  readonly key: string
  readonly plan: BehaviourOf<"video_job">
  readonly ask: VideoAsk
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** Name of its result. */
  readonly file: string
  /** What is left of the faults that polls get. */
  readonly faults: Fault[]
  polls: number
  cancelledAt: number | null
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
  readonly videos: Map<string, VideoJob>
  /** The same by the name of the result. */
  readonly videoFiles: Map<string, VideoJob>
  /** The same by whose it is and the caller's own id. */
  readonly videosByCaller: Map<string, VideoJob>
  /** How often each video was submitted, refused or not: by the caller's own id where the vendor takes one, else by the prompt. */
  readonly submits: Map<string, number>
}

export const maxRemembered = 20_000

export function emptyMemory(): VendorMemory {
  return {
    jobs: new Map(),
    files: new Map(),
    videos: new Map(),
    videoFiles: new Map(),
    videosByCaller: new Map(),
    submits: new Map(),
  }
}

/** Keeps a thing; the oldest of very many is forgotten. */
export function remember<T>(things: Map<string, T>, id: string, thing: T): void {
  const [oldest] = things.keys()
  if (things.size >= maxRemembered && oldest !== undefined) things.delete(oldest)
  things.set(id, thing)
}
