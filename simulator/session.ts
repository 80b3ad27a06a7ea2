import { Exchange } from "./exchange.ts"
import { type Connection, ConnectionOver } from "./wire/connection.ts"
import { sendReply, wholeReply } from "./wire/reply.ts"
import { BadRequest, type RequestHead, RequestParser } from "./wire/request-parser.ts"

/** A request on its way in: takes the body, answers when it is complete, or hears that it will never be. */
export interface Incoming {
  body(bytes: Uint8Array): void
  answer(): Promise<void>
  /** Called once, when the answer is over or the connection ended before it. */
  settle(): void
}

export type Accept = (head: RequestHead, connection: Connection, requestNumber: number) => Incoming

/** Pipelined bytes that wait while a request is being answered. */
export const maxPipelinedBytes = 1024 * 1024
const continueLine = new TextEncoder().encode("HTTP/1.1 100 Continue\r\n\r\n")

export interface SessionOptions {
  readonly accept: Accept
  /** Told of requests that were not HTTP, and of defects of the simulator. */
  readonly complain: (problem: string) => void
  /** Closes a connection that was idle for so long. */
  readonly idleCloseMs?: number
}

/** What happens on one connection: requests in order, one answered at a time. It always reads, so as to see the peer leave. */
export class Session {
  readonly connection: Connection
  readonly #options: SessionOptions
  readonly #parser = new RequestParser()
  #incoming: Incoming | null = null
  #answering = false
  #requests = 0
  #idleTimer: Timer | undefined

  constructor(connection: Connection, options: SessionOptions) {
    this.connection = connection
    this.#options = options
    this.#watchIdle()
  }

  onData(bytes: Uint8Array): void {
    clearTimeout(this.#idleTimer)
    this.#parser.feed(bytes)
    if (!this.#answering) this.#advance()
    else if (this.#parser.waiting > maxPipelinedBytes) this.connection.reset()
  }

  onClose(): void {
    clearTimeout(this.#idleTimer)
    this.connection.onClose()
    if (!this.#answering) this.#settle()
  }

  #advance(): void {
    try {
      this.#pull()
    } catch (error) {
      this.#run(this.#refuse(error))
    }
  }

  #pull(): void {
    while (this.connection.open) {
      const part = this.#parser.next()
      if (part === null) return
      if (part.kind === "head") {
        this.#incoming = this.#options.accept(part.head, this.connection, ++this.#requests)
        if (part.head.expectsContinue) this.#run(this.connection.write(continueLine))
      } else if (part.kind === "body") this.#incoming?.body(part.bytes)
      else {
        if (this.#incoming !== null) this.#run(this.#answer(this.#incoming))
        return
      }
    }
  }

  async #answer(incoming: Incoming): Promise<void> {
    this.#answering = true
    try {
      await incoming.answer()
    } finally {
      this.#answering = false
      this.#settle()
    }
    this.#watchIdle()
    this.#advance()
  }

  async #refuse(error: unknown): Promise<void> {
    if (!(error instanceof BadRequest)) throw error
    this.#options.complain(error.message)
    const reply = wholeReply(error.status, `${error.message}\n`, [["content-type", "text/plain"]])
    await sendReply(new Exchange(this.connection, null, false), reply)
  }

  #settle(): void {
    this.#incoming?.settle()
    this.#incoming = null
  }

  #watchIdle(): void {
    const { idleCloseMs } = this.#options
    if (idleCloseMs !== undefined) this.#idleTimer = setTimeout(() => this.connection.fin(), idleCloseMs)
  }

  /** Work that ends with the connection; any other failure is a defect, told and answered with a reset. */
  #run(work: Promise<void>): void {
    work.catch((error: unknown) => {
      if (error instanceof ConnectionOver) return
      this.#options.complain(error instanceof Error ? (error.stack ?? error.message) : String(error))
      this.connection.reset()
    })
  }
}
