/** After so many chunks in a row that did not repeat, it is no longer tried: the vendor varies more than the text. */
const mostMisses = 16

const quote = 0x22
const backslash = 0x5c
const firstPrintable = 0x20

/**
 * Recognises chunks that are the same as one already read but for a piece of plain text in them. Of a stream's chunks nearly
 * all are; comparing bytes costs a fraction of splitting, decoding and parsing them.
 */
export class Repetition {
  #before: Uint8Array | null = null
  #behind: Uint8Array | null = null
  #misses = 0

  /** Remembers a chunk that says `text` exactly once, behind `key`; text that is written with escapes teaches nothing. */
  learn(chunk: Uint8Array, key: string, text: string): void {
    if (this.#misses > mostMisses) return
    const needle = Buffer.from(key + text)
    const at = Buffer.prototype.indexOf.call(chunk, needle)
    const start = at + needle.length - Buffer.byteLength(text)
    const end = at + needle.length
    if (at < 0 || chunk[end] !== quote || !isPlain(chunk, start, end)) return
    this.#before = chunk.slice(0, start)
    this.#behind = chunk.slice(end)
    this.#misses += 1
  }

  /** The text of a chunk that repeats; null where it does not. */
  textOf(chunk: Uint8Array): string | null {
    const before = this.#before
    const behind = this.#behind
    if (before === null || behind === null) return null
    const end = chunk.length - behind.length
    if (end <= before.length || !isPlain(chunk, before.length, end)) return null
    const same = Buffer.prototype.compare
    if (same.call(chunk, before, 0, before.length, 0, before.length) !== 0) return null
    if (same.call(chunk, behind, 0, behind.length, end) !== 0) return null
    this.#misses = 0
    return Buffer.prototype.toString.call(chunk, "utf8", before.length, end)
  }
}

/** Text as it stands between quotes: nothing in it is escaped or ends it. */
function isPlain(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!
    if (byte === quote || byte === backslash || byte < firstPrintable) return false
  }
  return true
}
