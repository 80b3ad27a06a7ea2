export type HeaderPair = readonly [name: string, value: string]

export interface RequestHead {
  readonly method: string
  /** Path and query, as they came. */
  readonly target: string
  /** Order and case kept. */
  readonly headers: readonly HeaderPair[]
  readonly keepAlive: boolean
  readonly expectsContinue: boolean
}

export type RequestPart =
  | { readonly kind: "head"; readonly head: RequestHead }
  | { readonly kind: "body"; readonly bytes: Uint8Array }
  | { readonly kind: "end" }

/** A request that is not HTTP/1.1 as this server wants it; the client is told why and cut off. */
export class BadRequest extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.name = "BadRequest"
    this.status = status
  }
}

export const maxHeadBytes = 64 * 1024
export const maxBodyBytes = 512 * 1024 * 1024
const maxChunkLineBytes = 1024

const headEnd = Buffer.from("\r\n\r\n")
const lineEnd = Buffer.from("\r\n")
const nothing = Buffer.alloc(0)
const requestLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP\/(\d\.\d)$/
const headerLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/
// Everything that may not stand in a header value: control characters other than tab.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const forbiddenInValue = /[\x00-\x08\x0a-\x1f\x7f]/

type State =
  | { readonly at: "head" | "chunk-size" | "chunk-end" | "trailers" | "end" }
  | { readonly at: "body" | "chunk"; readonly remaining: number }

/** Reads one connection's requests; parts are pulled, so that a pipelined request waits until the one before is answered. */
export class RequestParser {
  #pending: Buffer = nothing
  #state: State = { at: "head" }
  #bodyBytes = 0

  feed(bytes: Uint8Array): void {
    const more = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#pending = this.#pending.length === 0 ? more : Buffer.concat([this.#pending, more])
  }

  /** Bytes that came and were not pulled yet. */
  get waiting(): number {
    return this.#pending.length
  }

  /** The next part, or null until more bytes come. */
  next(): RequestPart | null {
    for (;;) {
      const state = this.#state
      switch (state.at) {
        case "head":
          return this.#head()
        case "body":
        case "chunk":
          return this.#bodyBytesOf(state)
        case "end":
          this.#state = { at: "head" }
          return { kind: "end" }
        case "chunk-size": {
          const line = this.#line(maxChunkLineBytes, "chunk size line")
          if (line === null) return null
          this.#state = this.#chunkState(line)
          break
        }
        case "chunk-end": {
          const line = this.#line(0, "chunk")
          if (line === null) return null
          this.#state = { at: "chunk-size" }
          break
        }
        case "trailers": {
          const line = this.#line(maxHeadBytes, "trailer line")
          if (line === null) return null
          if (line === "") this.#state = { at: "end" }
        }
      }
    }
  }

  #head(): RequestPart | null {
    const end = this.#pending.indexOf(headEnd)
    if ((end === -1 ? this.#pending.length : end) > maxHeadBytes) {
      throw new BadRequest(431, `request head is longer than ${maxHeadBytes} bytes`)
    }
    if (end === -1) return null
    const head = parseHead(this.#pending.toString("latin1", 0, end))
    this.#pending = this.#pending.subarray(end + headEnd.length)
    this.#bodyBytes = 0
    this.#state = bodyState(head.headers)
    return { kind: "head", head }
  }

  #bodyBytesOf(state: { at: "body" | "chunk"; remaining: number }): RequestPart | null {
    if (this.#pending.length === 0) return null
    const bytes = this.#pending.subarray(0, state.remaining)
    this.#pending = this.#pending.subarray(bytes.length)
    const remaining = state.remaining - bytes.length
    if (remaining > 0) this.#state = { at: state.at, remaining }
    else this.#state = { at: state.at === "body" ? "end" : "chunk-end" }
    return { kind: "body", bytes }
  }

  #chunkState(line: string): State {
    const size = /^([0-9A-Fa-f]{1,8})(?:[ \t]*;.*)?$/.exec(line)?.[1]
    if (size === undefined) throw new BadRequest(400, `chunk size ${JSON.stringify(line)} is not a hexadecimal number`)
    const remaining = Number.parseInt(size, 16)
    this.#bodyBytes += remaining
    if (this.#bodyBytes > maxBodyBytes) throw bodyTooLong()
    return remaining === 0 ? { at: "trailers" } : { at: "chunk", remaining }
  }

  #line(longest: number, what: string): string | null {
    const end = this.#pending.indexOf(lineEnd)
    const length = end === -1 ? this.#pending.length - 1 : end
    if (length > longest) throw new BadRequest(400, `${what} is longer than it may be, or not ended by CRLF`)
    if (end === -1) return null
    const line = this.#pending.toString("latin1", 0, end)
    this.#pending = this.#pending.subarray(end + lineEnd.length)
    return line
  }
}

function parseHead(text: string): RequestHead {
  const [first = "", ...lines] = text.split("\r\n")
  const [, method, target, version] = requestLine.exec(first) ?? []
  if (method === undefined || target === undefined) {
    throw new BadRequest(400, `request line ${JSON.stringify(first.slice(0, 200))} is not "METHOD target HTTP/1.1"`)
  }
  if (version !== "1.1") throw new BadRequest(505, `HTTP/${version} is not spoken here, only HTTP/1.1`)
  if (!target.startsWith("/")) throw new BadRequest(400, "the request target must start with /")
  const headers = lines.map(parseHeader)
  if (valuesOf(headers, "host").length !== 1) throw new BadRequest(400, "there must be exactly one host header")
  const connection = valuesOf(headers, "connection").join(",").toLowerCase()
  return {
    method,
    target,
    headers,
    keepAlive: !/(^|,)\s*close\s*(,|$)/.test(connection),
    expectsContinue: valuesOf(headers, "expect").some((value) => value.toLowerCase() === "100-continue"),
  }
}

function parseHeader(line: string): HeaderPair {
  const [, name, value] = headerLine.exec(line) ?? []
  if (name === undefined || value === undefined || forbiddenInValue.test(value)) {
    throw new BadRequest(400, `header line ${JSON.stringify(line.slice(0, 200))} is malformed`)
  }
  return [name, value]
}

function bodyState(headers: readonly HeaderPair[]): State {
  const codings = valuesOf(headers, "transfer-encoding")
  const lengths = valuesOf(headers, "content-length")
  if (codings.length > 0) {
    if (lengths.length > 0) throw new BadRequest(400, "content-length and transfer-encoding came together")
    if (codings.join().toLowerCase() !== "chunked") throw new BadRequest(501, "the only transfer-encoding is chunked")
    return { at: "chunk-size" }
  }
  const [length = "0", ...others] = lengths
  if (others.length > 0) throw new BadRequest(400, "content-length came more than once")
  if (!/^\d{1,15}$/.test(length)) throw new BadRequest(400, `content-length ${JSON.stringify(length)} is not a number`)
  if (Number(length) > maxBodyBytes) throw bodyTooLong()
  return Number(length) === 0 ? { at: "end" } : { at: "body", remaining: Number(length) }
}

function bodyTooLong(): BadRequest {
  return new BadRequest(413, `request body is longer than ${maxBodyBytes} bytes`)
}

/** Every value of a header, in order; the name in lower case. */
export function valuesOf(headers: readonly HeaderPair[], name: string): string[] {
  return headers.filter(([header]) => header.toLowerCase() === name).map(([, value]) => value)
}
