import { utf8 } from "./bytes.ts"
import { readParameters } from "./header-parameters.ts"
import type { Span } from "./json-bytes.ts"
import { nameByte } from "./json-grammar.ts"
import { readHeaderLine } from "./multipart-header.ts"

/** One part of a multipart/form-data body; offsets are those of the whole body. */
export interface Part {
  /** Of its content-disposition, decoded; null where there is none. */
  readonly name: string | null
  readonly hasFilename: boolean
  /** The header lines, each with its CRLF; the blank line behind them belongs to neither span. */
  readonly headers: Span
  /** The content, without the CRLF that belongs to the next delimiter. */
  readonly value: Span
}

/** Bytes that are no multipart/form-data, or that two readers could understand in two ways. */
export class MultipartProblem extends Error {
  readonly offset: number

  constructor(what: string, offset: number) {
    super(`${what} at byte ${offset}`)
    this.name = "MultipartProblem"
    this.offset = offset
  }
}

export const maxBoundaryLength = 70
export const maxParts = 1000
export const maxHeadersPerPart = 64
export const maxHeaderBytesPerPart = 16 * 1024

const CR = 0x0d
const LF = 0x0a
const dash = 0x2d
const space = 0x20
const tab = 0x09
/** CRLF. The start of the body, and of a part's content, reads as if it stood just before. */
const lineEndLength = 2
const noBytes = new Uint8Array(0)

type State =
  /** In the preamble or in a part's content. */
  | "content"
  /** Straight behind the boundary. */
  | "boundary end"
  | "closing dash"
  | "padding"
  | "line feed"
  | "headers"
  | "epilogue"

/**
 * Finds the parts of a multipart/form-data body (RFC 7578, RFC 2046) as it arrives, holding no more of it than an
 * unfinished header line. What lenient readers forgive is refused, lest we and the vendor see different parts.
 */
export class MultipartScanner {
  readonly #delimiter: Uint8Array
  /** Offset of the current chunk in the body. */
  #base = 0
  #state: State = "content"
  #problem: MultipartProblem | null = null
  readonly #parts: Part[] = []
  #partOpen = false
  #closed = false

  /** How many bytes of the delimiter the last chunk ended with. */
  #matched = lineEndLength

  /** Of the open part. */
  #name: string | null = null
  #hasFilename = false
  #hasDisposition = false
  #headersStart = 0
  #headersEnd = 0
  #headerCount = 0
  #valueStart = 0

  /** What earlier chunks held of an unfinished header line: the first `#held` bytes. */
  #line: Uint8Array = noBytes
  #held = 0

  constructor(boundary: string) {
    if (!isBoundary(boundary)) throw new RangeError(`not a multipart boundary: ${JSON.stringify(boundary)}`)
    this.#delimiter = utf8(`\r\n--${boundary}`)
  }

  /** Reads the next bytes of the body; throws MultipartProblem at the first that cannot stand where it stands. */
  push(chunk: Uint8Array): void {
    if (this.#problem !== null) throw this.#problem
    let at = 0
    while (at < chunk.length) {
      if (this.#state === "content") at = this.#seekDelimiter(chunk, at)
      else if (this.#state === "headers") at = this.#readHeaders(chunk, at)
      else if (this.#state === "epilogue") at = chunk.length
      else {
        this.#passDelimiterLine(chunk[at]!, at)
        at++
      }
    }
    this.#base += chunk.length
  }

  /** The body is over; throws MultipartProblem when the closing delimiter has not been seen. */
  end(): readonly Part[] {
    if (this.#problem !== null) throw this.#problem
    const whole = this.#state === "epilogue" || (this.#closed && this.#state === "padding")
    if (whole) return this.#parts
    const where =
      this.#state === "content" && !this.#partOpen ? "before the first boundary" : "before the closing boundary"
    throw this.#fail(`the body ends ${where}`, 0)
  }

  /** Looks for the delimiter; tells where to go on. */
  #seekDelimiter(chunk: Uint8Array, from: number): number {
    const delimiter = this.#delimiter
    let at = from
    let matched = this.#matched
    if (matched > 0) {
      while (matched < delimiter.length && at < chunk.length && chunk[at] === delimiter[matched]) {
        at++
        matched++
      }
      if (matched === delimiter.length) return this.#foundDelimiter(at)
      this.#matched = matched
      if (at === chunk.length) return at
    }
    // CR stands in the delimiter only as its first byte: no beginning of another one can hide in what did match.
    const found = Buffer.prototype.indexOf.call(chunk, delimiter, at)
    if (found >= 0) return this.#foundDelimiter(found + delimiter.length)
    this.#matched = matchedAtEnd(chunk, at, delimiter)
    return chunk.length
  }

  #foundDelimiter(end: number): number {
    const start = this.#base + end - this.#delimiter.length
    if (this.#partOpen) {
      // Some readers see an empty part here, others one that starts with the boundary's text.
      if (start < this.#valueStart) {
        throw this.#fail(
          "the boundary follows a part's headers without a line of its own",
          end - this.#delimiter.length + lineEndLength,
        )
      }
      const headers = { start: this.#headersStart, end: this.#headersEnd }
      const value = { start: this.#valueStart, end: start }
      this.#parts.push({ name: this.#name, hasFilename: this.#hasFilename, headers, value })
      this.#partOpen = false
    }
    this.#state = "boundary end"
    return end
  }

  /** What follows a boundary: `--` for the last one, spaces and tabs, CRLF. */
  #passDelimiterLine(byte: number, at: number): void {
    const state = this.#state
    if (state === "boundary end" && byte === dash) this.#state = "closing dash"
    else if (state === "closing dash" && byte === dash) {
      this.#closed = true
      this.#state = "padding"
    } else if ((state === "boundary end" || state === "padding") && (byte === space || byte === tab)) {
      this.#state = "padding"
    } else if ((state === "boundary end" || state === "padding") && byte === CR) this.#state = "line feed"
    else if (state === "line feed" && byte === LF) {
      if (this.#closed) this.#state = "epilogue"
      else this.#openPart(at + 1)
    } else
      throw this.#fail(`expected CRLF${this.#closed ? "" : ' or "--"'} after the boundary, found ${nameByte(byte)}`, at)
  }

  #openPart(at: number): void {
    if (this.#parts.length === maxParts) throw this.#fail(`more than ${maxParts} parts`, at)
    this.#state = "headers"
    this.#partOpen = true
    this.#name = null
    this.#hasFilename = false
    this.#hasDisposition = false
    this.#headerCount = 0
    this.#headersStart = this.#base + at
    this.#headersEnd = this.#headersStart
  }

  /** Reads header lines as far as the chunk has them; tells where to go on. */
  #readHeaders(chunk: Uint8Array, from: number): number {
    const lineFeed = chunk.indexOf(LF, from)
    const next = lineFeed < 0 ? chunk.length : lineFeed + 1
    // The blank line is not counted; it must come, so that a block too long is seen here at the latest with it.
    const limit = this.#headersStart + maxHeaderBytesPerPart - this.#base
    if (next > limit + lineEndLength) {
      throw this.#fail(`a part's headers are longer than ${maxHeaderBytesPerPart} bytes`, limit)
    }
    if (lineFeed < 0) {
      this.#hold(chunk, from)
      return next
    }
    if (this.#held === 0) this.#passLine(chunk.subarray(from, next), next)
    else {
      this.#hold(chunk.subarray(0, next), from)
      const line = this.#line.subarray(0, this.#held)
      this.#held = 0
      this.#passLine(line, next)
    }
    return next
  }

  /** Keeps the bytes from `from` on until their line is complete; the limit on headers bounds them. */
  #hold(bytes: Uint8Array, from: number): void {
    if (this.#line.length === 0) this.#line = new Uint8Array(maxHeaderBytesPerPart + lineEndLength)
    this.#line.set(bytes.subarray(from), this.#held)
    this.#held += bytes.length - from
  }

  /** Takes a line that ends with LF, `next` being the place behind it. */
  #passLine(line: Uint8Array, next: number): void {
    const length = line.length - lineEndLength
    if (length < 0 || line[length] !== CR) throw this.#fail("a part's header line ends with LF, not CRLF", next - 1)
    if (length === 0) {
      this.#valueStart = this.#base + next
      this.#matched = lineEndLength
      this.#state = "content"
      return
    }
    const start = next - line.length
    this.#headersEnd = this.#base + next
    if (++this.#headerCount > maxHeadersPerPart)
      throw this.#fail(`more than ${maxHeadersPerPart} headers in a part`, start)
    const disposition = readHeaderLine(line.subarray(0, length))
    if (disposition === null) return
    if ("problem" in disposition) throw this.#fail(disposition.problem, start + disposition.at)
    if (this.#hasDisposition) throw this.#fail("a part has two content-disposition headers", start)
    this.#hasDisposition = true
    this.#name = disposition.name
    this.#hasFilename = disposition.hasFilename
  }

  /** Remembers the problem, so that a scanner that has failed cannot be fed on into a good answer. */
  #fail(what: string, at: number): MultipartProblem {
    this.#problem = new MultipartProblem(what, this.#base + at)
    return this.#problem
  }
}

/** How many bytes at the end of the chunk are a beginning of the delimiter. */
function matchedAtEnd(chunk: Uint8Array, from: number, delimiter: Uint8Array): number {
  const tail = chunk.subarray(Math.max(from, chunk.length - delimiter.length + 1))
  const start = tail.lastIndexOf(CR)
  if (start < 0) return 0
  for (let at = start; at < tail.length; at++) if (tail[at] !== delimiter[at - start]) return 0
  return tail.length - start
}

/** Scans a body that is there as a whole. */
export function scanMultipart(bytes: Uint8Array, boundary: string): readonly Part[] {
  const scanner = new MultipartScanner(boundary)
  scanner.push(bytes)
  return scanner.end()
}

/**
 * More than the characters of RFC 2046, since clients in the field use others, such as asterisks; but no quote and no
 * backslash, which readers unescape differently, and no space at the end, which is padding.
 */
function isBoundary(text: string): boolean {
  return text.length <= maxBoundaryLength && /^[ !#-[\]-~]*[!#-[\]-~]$/.test(text)
}

/** The boundary that a content-type of multipart/form-data gives; null for any other type, and for none or a bad one. */
export function boundaryOf(contentType: string): string | null {
  const read = readParameters(contentType)
  if ("problem" in read || read.kind !== "multipart/form-data") return null
  // With an RFC 2231 spelling of it around, readers could choose differently.
  for (const name of read.parameters.keys()) if (name.startsWith("boundary*")) return null
  const boundary = read.parameters.get("boundary")?.written
  return boundary !== undefined && isBoundary(boundary) ? boundary : null
}
