import type { Socket } from "bun"
import { AnswerReader } from "./answer-reader.ts"

/** No byte for this long on a connection: the target hangs, and so would the bench. */
const STALL_MS = 10_000
const STALL_CHECK_MS = 500
/** Opening connections a little apart keeps streams from ticking in step, which would flatter every event loop. */
const STAGGER_MS = 3

export interface Load {
  readonly url: string
  readonly request: Uint8Array
  readonly expected: Buffer
  readonly connections: number
  /** Asked before each request of a connection with how many it has sent; false ends the connection. */
  mayAsk(sent: number): boolean
}

export interface Tally {
  /** Complete and right, byte for byte. */
  readonly answers: number
  /** Network reads in which they arrived. */
  readonly reads: number
  /** One text for each connection that got a wrong answer or none. */
  readonly wrong: readonly string[]
}

/** One keep-alive connection in a closed loop: ask, check the answer, ask again. */
class Client {
  answers = 0
  reads = 0
  lastByteAt = performance.now()
  readonly finished: Promise<void>
  readonly #load: Load
  readonly #reader: AnswerReader
  readonly #finish: () => void
  #socket: Socket | null = null
  #ended = false
  #sent = 0
  wrong: string | null = null

  constructor(load: Load) {
    this.#load = load
    this.#reader = new AnswerReader(load.expected)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.finished = promise
    this.#finish = resolve
  }

  async start(): Promise<void> {
    const { hostname, port } = new URL(this.#load.url)
    const handlers = {
      open: (socket: Socket) => {
        this.#socket = socket
        this.#ask(socket)
      },
      data: (socket: Socket, bytes: Buffer) => this.#read(socket, bytes),
      close: () => this.end("the connection was closed before the answer was complete"),
      error: (_socket: Socket, error: Error) => this.end(error.message),
      connectError: (_socket: Socket, error: Error) => this.end(error.message),
    }
    await Bun.connect({ hostname, port: Number(port), socket: handlers }).catch((error: Error) =>
      this.end(error.message),
    )
  }

  end(wrong: string | null): void {
    if (this.#ended) return
    this.#ended = true
    this.wrong = wrong
    this.#socket?.end()
    this.#finish()
  }

  #ask(socket: Socket): void {
    if (!this.#load.mayAsk(this.#sent)) {
      this.end(null)
      return
    }
    this.#sent += 1
    const written = socket.write(this.#load.request)
    if (written !== this.#load.request.length) this.end(`only ${written} bytes of the request could be sent`)
  }

  #read(socket: Socket, bytes: Buffer): void {
    if (this.#ended) return
    this.reads += 1
    this.lastByteAt = performance.now()
    try {
      if (!this.#reader.feed(bytes)) return
    } catch (error) {
      this.end(error instanceof Error ? error.message : String(error))
      return
    }
    this.answers += 1
    this.#ask(socket)
  }
}

/** Runs the load until every connection has ended; nothing is in flight before or after. */
export async function drive(load: Load): Promise<Tally> {
  const clients = Array.from({ length: load.connections }, () => new Client(load))
  const watch = setInterval(() => {
    const oldest = performance.now() - STALL_MS
    for (const client of clients) if (client.lastByteAt < oldest) client.end(`no byte came for ${STALL_MS / 1000} s`)
  }, STALL_CHECK_MS)
  try {
    for (const client of clients) {
      await client.start()
      await Bun.sleep(STAGGER_MS)
    }
    await Promise.all(clients.map((client) => client.finished))
  } finally {
    clearInterval(watch)
  }
  return {
    answers: clients.reduce((sum, client) => sum + client.answers, 0),
    reads: clients.reduce((sum, client) => sum + client.reads, 0),
    wrong: clients.flatMap((client) => client.wrong ?? []),
  }
}
