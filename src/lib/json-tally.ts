import { textOf } from "./bytes.ts"
import { type Field, type JsonKind, JsonProblem, JsonScanner } from "./json-bytes.ts"

/** What is wanted of the top level of a document. */
export interface Wanted {
  /** Fields whose bytes are kept. */
  readonly keep: readonly string[]
  /** Fields of which only their kind and the number of their entries matter, however large they are. */
  readonly note?: readonly string[]
  /** The most bytes kept of one field. */
  readonly limit?: number
}

export interface TalliedField {
  readonly kind: JsonKind
  /** Elements of an array, members of an object. */
  readonly entries: number
  /** As it was written; null for a field that is not kept. */
  readonly bytes: Uint8Array | null
}

export interface Tally {
  /** It is no JSON, or is not all there. */
  readonly broken: boolean
  /** Null where the document is broken. */
  readonly root: JsonKind | null
  readonly fields: ReadonlyMap<string, TalliedField>
  /** Fields to be kept that are longer than the limit. */
  readonly tooLong: readonly string[]
  /** Fields that stand there more than once: the first one was read, and others may read the last. */
  readonly duplicates: readonly string[]
}

const defaultLimit = 64 * 1024

const brokenTally: Tally = { broken: true, root: null, fields: new Map(), tooLong: [], duplicates: [] }

/** Reads a few fields out of a JSON document of any size as it passes. It never throws and keeps nothing else. */
export class JsonTally {
  readonly #scanner: JsonScanner
  readonly #keep: readonly string[]
  readonly #limit: number
  /** Offset of the current chunk in the document. */
  #base = 0
  #broken = false
  /** Null for a field that is too long. */
  readonly #kept = new Map<string, Uint8Array | null>()
  /** What earlier chunks held of the value that is being read, as long as it can still be kept. */
  #head: Uint8Array[] = []

  constructor({ keep, note = [], limit = defaultLimit }: Wanted) {
    this.#scanner = new JsonScanner([...keep, ...note])
    this.#keep = keep
    this.#limit = limit
  }

  push(chunk: Uint8Array): void {
    if (this.#broken) return
    try {
      this.#scanner.push(chunk)
    } catch (error) {
      if (!(error instanceof JsonProblem)) throw error
      this.#broken = true
      this.#head = []
      this.#kept.clear()
      return
    }
    for (const name of this.#keep) {
      const field = this.#scanner.fields.get(name)
      if (field !== undefined && !this.#kept.has(name)) this.#take(name, field, chunk)
    }
    this.#keepHead(chunk)
    this.#base += chunk.length
  }

  /** The document is over. */
  end(): Tally {
    if (this.#broken) return brokenTally
    try {
      const { root, fields, duplicates } = this.#scanner.end()
      const tallied = new Map<string, TalliedField>()
      for (const [name, { kind, entries }] of fields)
        tallied.set(name, { kind, entries, bytes: this.#kept.get(name) ?? null })
      const tooLong = this.#keep.filter((name) => this.#kept.get(name) === null)
      return { broken: false, root, fields: tallied, tooLong, duplicates }
    } catch (error) {
      if (!(error instanceof JsonProblem)) throw error
      return brokenTally
    }
  }

  /** A field has ended in this chunk. */
  #take(name: string, { value: { start, end } }: Field, chunk: Uint8Array): void {
    if (end - start > this.#limit) {
      this.#kept.set(name, null)
      return
    }
    const tail = chunk.slice(Math.max(0, start - this.#base), end - this.#base)
    this.#kept.set(name, start < this.#base ? Buffer.concat([...this.#head, tail]) : tail)
  }

  #keepHead(chunk: Uint8Array): void {
    const open = this.#scanner.unfinished
    if (open === null || open.start >= this.#base) this.#head = []
    if (open === null || !this.#keep.includes(open.name)) return
    const from = open.start - this.#base
    if (chunk.length - from <= this.#limit) this.#head.push(chunk.slice(Math.max(0, from)))
    else this.#head = []
  }
}

/** What a kept field says; undefined where it is not there or was not kept. */
export function talliedValue(tally: Tally, name: string): unknown {
  const bytes = tally.fields.get(name)?.bytes
  return bytes === undefined || bytes === null ? undefined : JSON.parse(textOf(bytes))
}

/** True where what was read may not be what the document says: it is broken, or others may read it otherwise. */
export function isDoubtful({ broken, tooLong, duplicates }: Tally): boolean {
  return broken || tooLong.length > 0 || duplicates.length > 0
}
