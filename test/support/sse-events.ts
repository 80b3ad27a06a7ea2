/** The data of each event of a whole stream, read apart from the gateway's own reader. */
export function dataOf(stream: string): string[] {
  return stream
    .split(/\r\n\r\n|\n\n|\r\r/)
    .map((block) =>
      block
        .split(/\r\n|\n|\r/)
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice(line.startsWith("data: ") ? 6 : 5))
        .join("\n"),
    )
    .filter((data) => data !== "")
}

export interface ChatChunk {
  readonly id?: string
  readonly choices?: readonly unknown[]
  readonly usage?: Record<string, unknown> | null
  readonly [name: string]: unknown
}

/** The chunks of a chat stream; the end marker and anything that is no JSON left out. */
export function chunksOf(stream: string): ChatChunk[] {
  return dataOf(stream).flatMap((data) => {
    try {
      return [JSON.parse(data) as ChatChunk]
    } catch {
      return []
    }
  })
}

/** The chunks that carry usage and nothing else. */
export function usageChunksOf(stream: string): ChatChunk[] {
  return chunksOf(stream).filter((chunk) => chunk.choices?.length === 0 && chunk.usage)
}
