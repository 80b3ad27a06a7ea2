import { searchMp4Duration, type Wish } from "./mp4.ts"

/** Reads part of a file: fewer bytes than asked only at its end, null where the part is not to be had. */
export type RangeRead = (start: number, length: number) => Promise<Uint8Array | null>

const mostReads = 4
const bytesPerRead = 64 * 1024

/**
 * How long a film is in seconds, read from as little of its MP4 file as that takes: its head, then wherever the sizes of its
 * boxes lead. Null where the file does not tell, cannot be read, or hides it behind more than a few jumps. Never throws.
 */
export async function probeSeconds(read: RangeRead, size: number | null): Promise<number | null> {
  const source = new FileWindow(read, size ?? Number.MAX_SAFE_INTEGER)
  const search = searchMp4Duration(source.end)
  let step = search.next()
  while (!step.done) step = search.next(source.see(step.value) ?? (await source.load(step.value)))
  return step.value
}

/** The part of a file that was read last. */
class FileWindow {
  /** Nothing is to be had from here on. */
  end: number
  readonly #read: RangeRead
  #start = 0
  #bytes = new Uint8Array()
  #reads = 0

  constructor(read: RangeRead, end: number) {
    this.#read = read
    this.end = end
  }

  see({ at, length }: Wish): DataView | null {
    const offset = at - this.#start
    if (offset < 0 || offset + length > this.#bytes.length) return null
    return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + offset, length)
  }

  async load(wish: Wish): Promise<DataView | null> {
    if (this.#reads === mostReads || wish.at + wish.length > this.end) return null
    this.#reads++
    const wanted = Math.min(bytesPerRead, this.end - wish.at)
    const bytes = await this.#readOrNull(wish.at, wanted)
    this.#start = wish.at
    this.#bytes = bytes ?? new Uint8Array()
    if (this.#bytes.length < wanted) this.end = wish.at + this.#bytes.length
    return this.see(wish)
  }

  async #readOrNull(start: number, length: number): Promise<Uint8Array<ArrayBuffer> | null> {
    try {
      const bytes = await this.#read(start, length)
      return bytes === null ? null : new Uint8Array(bytes)
    } catch {
      return null
    }
  }
}
