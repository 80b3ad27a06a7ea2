import { connect, type Socket } from "node:net"

/** One answer on a connection. */
export interface Answer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/** How a connection came to its end: `end` by FIN, `refused`, or a code such as `ECONNRESET`. */
export class ConnectionEnded extends Error {
  readonly how: string
  /** Bytes of an answer that had arrived and were not a whole one. */
  readonly leftOver: string

  constructor(how: string, leftOver: string) {
    super(`the connection ended (${how}) with ${JSON.stringify(leftOver.slice(0, 300))} left over`)
    this.name = "ConnectionEnded"
    this.how = how
    this.leftOver = leftOver
  }
}

/** A connection that is used again and again, one request at a time, and that sees exactly how it is ended. */
export class KeepAliveClient {
  readonly #socket: Socket
  #pending: Buffer = Buffer.alloc(0)
  #endedBy: string | null = null
  #wake: () => void = () => {}

  private constructor(port: number) {
    this.#socket = connect({ port, host: "127.0.0.1", noDelay: true })
    this.#socket.on("data", (bytes: Buffer) => {
      this.#pending = Buffer.concat([this.#pending, bytes])
      this.#wake()
    })
    this.#socket.on("error", (error: NodeJS.ErrnoException) => this.#over(error.code ?? error.message))
    this.#socket.on("end", () => this.#over("end"))
    this.#socket.on("close", () => this.#over("close"))
  }

  static async open(port: number): Promise<KeepAliveClient> {
    const client = new KeepAliveClient(port)
    await new Promise<void>((resolve, reject) => {
      client.#socket.once("connect", resolve)
      client.#socket.once("error", reject)
    })
    return client
  }

  /** Sends a request and waits for its whole answer; throws ConnectionEnded where there is none. */
  async ask(request: string): Promise<Answer> {
    if (this.#endedBy !== null) throw new ConnectionEnded(this.#endedBy, "")
    this.#socket.write(request)
    for (;;) {
      const answer = this.#take()
      if (answer !== null) return answer
      if (this.#endedBy !== null) throw new ConnectionEnded(this.#endedBy, this.#pending.toString())
      await this.#more()
    }
  }

  /** Resolves once the other side has ended the connection, with how it did. */
  async ended(): Promise<string> {
    while (this.#endedBy === null) await this.#more()
    return this.#endedBy
  }

  close(): void {
    this.#socket.destroy()
  }

  #over(how: string): void {
    this.#endedBy ??= how
    this.#wake()
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #take(): Answer | null {
    const headEnd = this.#pending.indexOf("\r\n\r\n")
    if (headEnd < 0) return null
    const [statusLine = "", ...lines] = this.#pending.toString("latin1", 0, headEnd).split("\r\n")
    const headers = new Map(lines.map((line) => splitHeader(line)))
    const rest = this.#pending.subarray(headEnd + 4)
    const read = headers.get("transfer-encoding") === "chunked" ? readChunks(rest) : readLength(rest, headers)
    if (read === null) return null
    this.#pending = rest.subarray(read.used)
    return { status: Number(statusLine.split(" ")[1]), headers, body: read.body }
  }
}

function splitHeader(line: string): [string, string] {
  const colon = line.indexOf(":")
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
}

interface Read {
  readonly body: string
  readonly used: number
}

function readLength(bytes: Buffer, headers: ReadonlyMap<string, string>): Read | null {
  const length = Number(headers.get("content-length") ?? Number.NaN)
  if (Number.isNaN(length)) throw new Error("the answer has neither a length nor chunks")
  return bytes.length < length ? null : { body: bytes.toString("utf8", 0, length), used: length }
}

function readChunks(bytes: Buffer): Read | null {
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", at)
    if (lineEnd < 0) return null
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16)
    const start = lineEnd + 2
    if (bytes.length < start + size + 2) return null
    parts.push(bytes.subarray(start, start + size))
    at = start + size + 2
    if (size === 0) return { body: Buffer.concat(parts).toString("utf8"), used: at }
  }
}

/** The bytes of a chat request that keeps its connection. */
export function chatRequest(key: string, body: object): string {
  const text = JSON.stringify({ messages: [{ role: "user", content: "hi" }], ...body })
  return (
    `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  )
}
