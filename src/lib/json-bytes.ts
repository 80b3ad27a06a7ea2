import * as grammar from "./json-grammar.ts"

/** Byte offsets in the whole body, `end` exclusive. */
export interface Span {
  readonly start: number
  readonly end: number
}

export type JsonKind = "string" | "number" | "true" | "false" | "null" | "object" | "array"

export interface Field {
  /** With its quotes. */
  readonly key: Span
  readonly value: Span
  readonly kind: JsonKind
  /** Elements of an array, members of an object. */
  readonly entries: number
}

export interface JsonShape {
  readonly root: JsonKind
  readonly rootSpan: Span
  /** The first occurrence of each wanted key at the top level. */
  readonly fields: ReadonlyMap<string, Field>
  /** Wanted keys seen more than once at the top level, each named once. */
  readonly duplicates: readonly string[]
}

/** Bytes that are no JSON: `message` names what was found and where. */
export class JsonProblem extends Error {
  readonly offset: number

  constructor(what: string, offset: number) {
    super(`${what} at byte ${offset}`)
    this.name = "JsonProblem"
    this.offset = offset
  }
}

/** Containers inside containers; deeper bodies are refused, since whoever parses them next may do so recursively. */
export const defaultMaxDepth = 1000

/** A character spelled as \uXXXX takes six bytes, the longest spelling of a UTF-16 unit that JSON and UTF-8 have. */
const longestSpelling = 6

const noBytes = new Uint8Array(0)
const notInKey = -1
const quote = 0x22
const backslash = 0x5c
const byteOrderMark = 0xef

/**
 * Checks JSON (RFC 8259) as it arrives and notes where the wanted values of the top-level object stand, without
 * building anything. Bytes above 0x7f inside strings are not judged.
 */
export class JsonScanner {
  readonly #wanted: readonly string[]
  readonly #longestKey: number
  readonly #maxDepth: number
  /** Offset of the current chunk in the body. */
  #base = 0
  #problem: JsonProblem | null = null

  #state = grammar.VALUE
  /** The state that follows a value in the innermost open container, and those of the containers around it. */
  #after = grammar.NOTHING_MORE
  readonly #afters: number[] = []
  #depth = 0
  #stringIsKey = false

  /** While inside a top-level key: the offset of its opening quote. */
  #openKey = notInKey
  /** What earlier chunks held of that key. */
  #keyHead: Uint8Array = noBytes
  #keyStart = 0
  #keyEnd = 0
  /** The wanted key whose value is next or being read. */
  #name: string | null = null
  #valueStart = 0
  #valueByte = 0
  #entries = 0

  #rootStart = 0
  #rootEnd = 0
  #rootByte = 0
  readonly #fields = new Map<string, Field>()
  readonly #duplicates: string[] = []

  /** `wanted`: the top-level keys to note, compared after decoding escapes. */
  constructor(wanted: readonly string[], maxDepth: number = defaultMaxDepth) {
    let longest = 0
    for (const key of wanted) if (key.length > longest) longest = key.length
    this.#wanted = wanted
    this.#longestKey = longest * longestSpelling
    this.#maxDepth = maxDepth
  }

  /** Reads the next bytes of the body; throws JsonProblem at the first one that cannot stand where it stands. */
  push(chunk: Uint8Array): void {
    if (this.#problem !== null) throw this.#problem
    const length = chunk.length
    let state = this.#state
    let after = this.#after
    let depth = this.#depth
    for (let at = 0; at < length; at++) {
      if (state === grammar.IN_STRING) {
        at = grammar.skipStringRun(chunk, at)
        if (at === length) break
      }
      const byte = chunk[at]!
      const step = grammar.steps[(state << 8) | byte]!
      if (step < grammar.FIRST_ACTION) {
        if (step === grammar.REFUSE) throw this.#unexpected(byte, at)
        state = step
        continue
      }
      switch (step) {
        case grammar.START_SCALAR:
          if (depth <= 1) this.#noteStart(depth, byte, at)
          else if (depth === 2) this.#entries++
          this.#stringIsKey = false
          state = grammar.firstState[byte]!
          break
        case grammar.START_KEY:
          if (depth === 1) this.#openKey = this.#base + at
          this.#stringIsKey = true
          state = grammar.IN_STRING
          break
        case grammar.END_STRING:
        case grammar.END_WORD:
          if (step === grammar.END_STRING && this.#stringIsKey) {
            if (depth === 1) this.#closeKey(chunk, at)
            state = grammar.COLON
            break
          }
          if (depth <= 1) this.#noteEnd(depth, at + 1)
          state = after
          break
        case grammar.END_NUMBER:
          if (depth <= 1) this.#noteEnd(depth, at)
          state = after
          at--
          break
        case grammar.CLOSE:
          after = this.#afters[--depth]!
          if (depth <= 1) this.#noteEnd(depth, at + 1)
          state = after
          break
        default:
          if (depth <= 1) this.#noteStart(depth, byte, at)
          else if (depth === 2) this.#entries++
          if (depth >= this.#maxDepth) throw this.#fail(`nested deeper than ${this.#maxDepth} levels`, at)
          this.#afters[depth++] = after
          after = step === grammar.OPEN_OBJECT ? grammar.AFTER_MEMBER : grammar.AFTER_ITEM
          state = step === grammar.OPEN_OBJECT ? grammar.KEY_OR_CLOSE : grammar.VALUE_OR_CLOSE
      }
    }
    this.#state = state
    this.#after = after
    this.#depth = depth
    if (this.#openKey !== notInKey) this.#keepKeyHead(chunk)
    this.#base += length
  }

  /** The wanted values that have ended so far. */
  get fields(): ReadonlyMap<string, Field> {
    return this.#fields
  }

  /** The wanted value that is being read, and where it starts; null where none is. */
  get unfinished(): { readonly name: string; readonly start: number } | null {
    const name = this.#name
    return name !== null && this.#valueStart >= this.#keyEnd ? { name, start: this.#valueStart } : null
  }

  /** The body is over; throws JsonProblem when the JSON is not. */
  end(): JsonShape {
    if (this.#problem !== null) throw this.#problem
    if (this.#depth === 0 && grammar.isWholeNumber(this.#state)) {
      this.#noteEnd(0, 0)
      this.#state = grammar.NOTHING_MORE
    }
    if (this.#state !== grammar.NOTHING_MORE) throw this.#fail("unexpected end of body", 0)
    return {
      root: kindOf(this.#rootByte),
      rootSpan: { start: this.#rootStart, end: this.#rootEnd },
      fields: this.#fields,
      duplicates: this.#duplicates,
    }
  }

  #noteStart(depth: number, byte: number, at: number): void {
    if (depth === 0) {
      this.#rootStart = this.#base + at
      this.#rootByte = byte
    } else {
      this.#valueStart = this.#base + at
      this.#valueByte = byte
      this.#entries = 0
    }
  }

  #noteEnd(depth: number, at: number): void {
    const end = this.#base + at
    const name = this.#name
    if (depth === 0) this.#rootEnd = end
    else if (name !== null) {
      this.#name = null
      if (!this.#fields.has(name)) {
        const key = { start: this.#keyStart, end: this.#keyEnd }
        const value = { start: this.#valueStart, end }
        this.#fields.set(name, { key, value, kind: kindOf(this.#valueByte), entries: this.#entries })
      } else if (!this.#duplicates.includes(name)) this.#duplicates.push(name)
    }
  }

  /** Keeps what a chunk holds of an unfinished key, as long as the key can still be a wanted one. */
  #keepKeyHead(chunk: Uint8Array): void {
    if (this.#keyHead.length > this.#longestKey) return
    const start = Math.max(0, this.#openKey + 1 - this.#base)
    this.#keyHead = Buffer.concat([this.#keyHead, chunk.subarray(start, start + this.#longestKey + 1)])
  }

  #closeKey(chunk: Uint8Array, at: number): void {
    const head = this.#keyHead
    this.#keyStart = this.#openKey
    this.#keyEnd = this.#base + at + 1
    this.#openKey = notInKey
    this.#keyHead = noBytes
    if (this.#keyEnd - this.#keyStart - 2 > this.#longestKey) return
    if (this.#keyStart >= this.#base) this.#name = this.#match(chunk, this.#keyStart + 1 - this.#base, at)
    else {
      const key = Buffer.concat([head, chunk.subarray(0, at)])
      this.#name = this.#match(key, 0, key.length)
    }
  }

  /** The wanted key that these bytes between the quotes spell. */
  #match(bytes: Uint8Array, start: number, end: number): string | null {
    for (const key of this.#wanted) if (isPlainText(bytes, start, end, key)) return key
    if (isPlain(bytes, start, end)) return null
    const decoded: unknown = JSON.parse(`"${Buffer.prototype.toString.call(bytes, "utf8", start, end)}"`)
    return this.#wanted.find((key) => key === decoded) ?? null
  }

  #unexpected(byte: number, at: number): JsonProblem {
    const mark = byte === byteOrderMark && this.#base + at === 0 ? " (a byte order mark?)" : ""
    return this.#fail(`unexpected ${grammar.nameByte(byte)}${mark}`, at)
  }

  /** Remembers the problem, so that a scanner that has failed cannot be fed on into a good answer. */
  #fail(what: string, at: number): JsonProblem {
    this.#problem = new JsonProblem(what, this.#base + at)
    return this.#problem
  }
}

/** Scans a body that is there as a whole. */
export function scanJson(bytes: Uint8Array, wanted: readonly string[]): JsonShape {
  const scanner = new JsonScanner(wanted)
  scanner.push(bytes)
  return scanner.end()
}

/** What kind of value a first byte begins. */
function kindOf(byte: number): JsonKind {
  switch (byte) {
    case quote:
      return "string"
    case 0x7b:
      return "object"
    case 0x5b:
      return "array"
    case 0x74:
      return "true"
    case 0x66:
      return "false"
    case 0x6e:
      return "null"
    default:
      return "number"
  }
}

/** True for bytes that spell themselves: no escape, nothing but ASCII. */
function isPlain(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i]! > 0x7f || bytes[i] === backslash) return false
  return true
}

function isPlainText(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false
  for (let i = 0; i < text.length; i++) {
    const byte = bytes[start + i]!
    if (byte !== text.charCodeAt(i) || byte > 0x7f || byte === backslash) return false
  }
  return true
}

export interface Edit {
  /** What to replace; an empty span inserts. */
  readonly at: Span
  readonly put: Uint8Array
}

/** The bytes with some spans replaced. Edits come sorted and must not overlap. */
export function spliceBytes(bytes: Uint8Array, edits: readonly Edit[]): Uint8Array {
  const result = new Uint8Array(splicedLength(bytes.length, edits))
  let written = 0
  for (const piece of pieces(bytes, edits)) {
    result.set(piece, written)
    written += piece.length
  }
  return result
}

function pieces(bytes: Uint8Array, edits: readonly Edit[]): Uint8Array[] {
  const parts: Uint8Array[] = []
  let read = 0
  for (const { at, put } of edits) {
    parts.push(bytes.subarray(read, at.start), put)
    read = at.end
  }
  parts.push(bytes.subarray(read))
  return parts
}

function splicedLength(length: number, edits: readonly Edit[]): number {
  let total = length
  let free = 0
  for (const [index, { at, put }] of edits.entries()) {
    if (at.start < free)
      throw new RangeError(`edit ${index} starts at byte ${at.start}, but bytes before ${free} are taken`)
    if (at.end < at.start || at.end > length) {
      throw new RangeError(`edit ${index} ends at byte ${at.end}, outside ${at.start}..${length}`)
    }
    total += put.length - (at.end - at.start)
    free = at.end
  }
  return total
}
