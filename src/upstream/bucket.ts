import type { BucketTarget } from "../core/results-target.ts"

/** Named bytes in a bucket. */
export interface Bucket {
  /** Streams in parts; a body that breaks off leaves nothing under the name. */
  write(name: string, body: ReadableStream<Uint8Array>, type: string): Promise<void>
  /** Null where there is nothing under the name. */
  stat(name: string): Promise<BucketEntry | null>
  read(name: string, start: number, end: number): ReadableStream<Uint8Array>
  remove(name: string): Promise<void>
}

export interface BucketEntry {
  readonly size: number
  readonly type: string
  readonly etag: string
  readonly modified: Date
}

/** How often a part is sent again that did not go through, and how many parts of one upload are in memory. */
const sending = { retry: 3, queueSize: 2 } as const

export function openBucket({ bucket, prefix, endpoint, region, accessKeyId, ...secrets }: BucketTarget): Bucket {
  const { secretAccessKey, sessionToken } = secrets
  const lent = sessionToken === null ? {} : { sessionToken }
  const client = new Bun.S3Client({ bucket, endpoint, region, accessKeyId, secretAccessKey, ...lent, ...sending })
  return {
    async write(name, body, type) {
      const reader = body.getReader()
      try {
        await client.write(prefix + name, new Response(streamOf(reader)), { type })
      } catch (error) {
        // The client leaves a body that it cannot store standing, with the connection it comes from.
        await reader.cancel().catch(() => {})
        throw error
      }
    },
    async stat(name) {
      try {
        const { size, type, etag, lastModified } = await client.stat(prefix + name)
        return { size, type, etag, modified: lastModified }
      } catch (error) {
        if (isMissing(error)) return null
        throw error
      }
    },
    read: (name, start, end) =>
      client
        .file(prefix + name)
        .slice(start, end)
        .stream(),
    remove: (name) => client.delete(prefix + name),
  }
}

interface Reader {
  read(): Promise<{ readonly value?: Uint8Array | undefined }>
}

function streamOf(reader: Reader): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      async pull(sink) {
        const { value } = await reader.read()
        if (value === undefined) sink.close()
        else sink.enqueue(value)
      },
    },
    { highWaterMark: 0 },
  )
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "NoSuchKey"
}
