import { type ByteRange, rangeOf } from "../lib/byte-range.ts"

/** Keeps copies of results under their jobs' ids. */
export interface ResultStore {
  /** Resolves when the copy is safe; a body that breaks off leaves none. */
  put(jobId: string, body: ReadableStream<Uint8Array>, type: string): Promise<void>
  /** The part that a `range` header asks for; null where no copy is kept. */
  open(jobId: string, range: string | null): Promise<StoredPart | null>
  delete(jobId: string): Promise<void>
}

/** An answer out of a copy, as HTTP has it. */
export interface StoredPart {
  readonly status: 200 | 206 | 416
  readonly headers: Readonly<Record<string, string>>
  readonly body: Blob | ReadableStream<Uint8Array> | null
}

/** What is known of a copy before it is read. */
export interface KeptFile {
  readonly size: number
  readonly type: string
  readonly etag: string
  readonly modified: Date
}

export function partOf(
  { size, type, etag, modified }: KeptFile,
  range: string | null,
  read: (part: ByteRange) => Blob | ReadableStream<Uint8Array>,
): StoredPart {
  const always = { "accept-ranges": "bytes", etag, "last-modified": modified.toUTCString() }
  const part = rangeOf(range, size)
  if (part === null) return { status: 416, headers: { ...always, "content-range": `bytes */${size}` }, body: null }
  const length = part.end - part.start
  const headers = { ...always, "content-type": type, "content-length": String(length) }
  const body = length === 0 ? null : read(part)
  if (!part.isPartial) return { status: 200, headers, body }
  return { status: 206, headers: { ...headers, "content-range": `bytes ${part.start}-${part.end - 1}/${size}` }, body }
}

/** Ids become names of files: nothing that is not one may. */
export function nameOf(jobId: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(jobId))
    throw new Error("a result is kept under a job's id only")
  return jobId
}
