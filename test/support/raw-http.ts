import { connect, type Socket } from "node:net"

/** A response read from the wire, nothing normalised. */
export interface RawResponse {
  readonly status: number
  /** In order, names as they came. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
  readonly text: string
  /** The first value of a header; the name in lower case. */
  header(name: string): string | undefined
}

export interface RawConnection {
  readonly socket: Socket
  send(bytes: string | Uint8Array): void
  /** The next response on the connection, once it is complete. */
  response(): Promise<RawResponse>
  /** Resolves when the server has ended the connection. */
  readonly closed: Promise<void>
  leave(): void
}

const patienceMs = 20_000
const headEnd = Buffer.from("\r\n\r\n")
const crlf = Buffer.from("\r\n")

export async function rawConnection(url: string): Promise<RawConnection> {
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", noDelay: true })
  let pending: Buffer = Buffer.alloc(0)
  let over = false
  let wake = (): void => {}
  socket.on("data", (bytes: Buffer) => {
    pending = Buffer.concat([pending, bytes])
    wake()
  })
  const closed = new Promise<void>((resolve) => {
    const end = (): void => {
      over = true
      wake()
      resolve()
    }
    socket.once("error", end)
    socket.once("end", end)
    socket.once("close", end)
  })
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve)
    socket.once("error", reject)
  })
  return {
    socket,
    closed,
    send: (bytes) => void socket.write(bytes),
    async response() {
      const until = performance.now() + patienceMs
      for (;;) {
        const parsed = parseResponse(pending, over)
        if (parsed !== null) {
          pending = pending.subarray(parsed.length)
          return parsed.response
        }
        const left = until - performance.now()
        if (over || left <= 0)
          throw new Error(`no complete response ${over ? "before the end" : "in time"}: ${pending.toString("latin1")}`)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, left)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
    },
    leave: () => void socket.destroy(),
  }
}

/** Sends bytes on a connection of their own and reads the one response. */
export async function rawExchange(url: string, request: string | Uint8Array): Promise<RawResponse> {
  const connection = await rawConnection(url)
  try {
    connection.send(request)
    return await connection.response()
  } finally {
    connection.leave()
  }
}

/** A request head and body; header lines are given as they are to stand, in Latin-1. */
export function rawRequest(
  target: string,
  headers: readonly string[],
  body: string | Uint8Array = "",
  method = "POST",
): Uint8Array {
  const bytes = typeof body === "string" ? Buffer.from(body) : body
  return Buffer.concat([rawHead(target, [...headers, `Content-Length: ${bytes.length}`], method), bytes])
}

/** A request head alone, without any length of a body. */
export function rawHead(target: string, headers: readonly string[], method = "POST"): Uint8Array {
  return Buffer.from(`${[`${method} ${target} HTTP/1.1`, "Host: gateway", ...headers].join("\r\n")}\r\n\r\n`, "latin1")
}

/** One chunk of a chunked body; an empty one ends it. */
export function rawChunk(bytes: string | Uint8Array): Uint8Array {
  const data = typeof bytes === "string" ? Buffer.from(bytes) : bytes
  return Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, crlf])
}

function parseResponse(bytes: Buffer, over: boolean): { response: RawResponse; length: number } | null {
  const end = bytes.indexOf(headEnd)
  if (end < 0) return null
  const [statusLine = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n")
  const status = Number(statusLine.split(" ")[1])
  const start = end + headEnd.length
  if (status < 200) {
    const next = parseResponse(bytes.subarray(start), over)
    return next === null ? null : { response: next.response, length: start + next.length }
  }
  const headers = lines.map((line) => {
    const colon = line.indexOf(":")
    return [line.slice(0, colon), line.slice(colon + 1).trim()] as const
  })
  const header = (name: string): string | undefined => headers.find(([given]) => given.toLowerCase() === name)?.[1]
  const read = readBody(bytes, start, header, over)
  if (read === null) return null
  const { body, length } = read
  return { response: { status, headers, header, body, text: body.toString("utf8") }, length }
}

function readBody(
  bytes: Buffer,
  start: number,
  header: (name: string) => string | undefined,
  over: boolean,
): { body: Buffer; length: number } | null {
  if (header("transfer-encoding")?.toLowerCase() === "chunked") return readChunks(bytes, start)
  const declared = header("content-length")
  if (declared === undefined) return over ? { body: bytes.subarray(start), length: bytes.length } : null
  const end = start + Number(declared)
  return bytes.length < end ? null : { body: bytes.subarray(start, end), length: end }
}

function readChunks(bytes: Buffer, start: number): { body: Buffer; length: number } | null {
  const parts: Buffer[] = []
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf(crlf, at)
    if (lineEnd < 0) return null
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16)
    const data = lineEnd + crlf.length
    if (bytes.length < data + size + crlf.length) return null
    if (size === 0) return { body: Buffer.concat(parts), length: data + crlf.length }
    parts.push(bytes.subarray(data, data + size))
    at = data + size + crlf.length
  }
}
