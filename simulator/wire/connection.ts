/** Thrown out of any wait or write once the connection is over; whoever was answering stops there. */
export class ConnectionOver extends Error {
  constructor() {
    super("the connection is over")
    this.name = "ConnectionOver"
  }
}

/** The part of Bun's socket that is used. */
export interface RawSocket {
  write(bytes: Uint8Array): number
  end(): unknown
  terminate(): void
  setNoDelay(noDelay?: boolean): unknown
}

export type ClosedBy = "peer" | "us"

let connectionsSoFar = 0

/** One TCP connection: writes that honour back-pressure, waits that end with the connection, and the ways to end it. */
export class Connection {
  /** Shared with the records of its calls, which must not keep the socket alive. */
  readonly facts: { readonly id: number; readonly openedAt: number; open: boolean }
  #closedBy: ClosedBy | null = null
  readonly #socket: RawSocket
  /** Everyone who waits for something on this connection; woken when it happens or the connection is over. */
  readonly #waiting = new Set<() => void>()
  #drained: (() => void) | null = null

  constructor(socket: RawSocket) {
    this.#socket = socket
    this.facts = { id: ++connectionsSoFar, openedAt: performance.now(), open: true }
    socket.setNoDelay(true)
  }

  get open(): boolean {
    return this.#closedBy === null
  }

  get closedBy(): ClosedBy | null {
    return this.#closedBy
  }

  /** Resolves when the kernel has taken every byte; `sent` hears of the bytes as they go. */
  async write(bytes: Uint8Array, sent?: (bytes: number) => void): Promise<void> {
    let rest = bytes
    while (rest.length > 0) {
      this.#mustBeOpen()
      const taken = this.#socket.write(rest)
      if (taken < 0) {
        // The peer is gone; a write may find out before the socket tells.
        this.#over("peer")
        throw new ConnectionOver()
      }
      sent?.(taken)
      rest = rest.subarray(taken)
      if (rest.length > 0) await this.#drain()
    }
  }

  /** Zero lets the event loop turn once, so that the bytes before can be read on their own. */
  async sleep(ms: number): Promise<void> {
    if (ms <= 0) await new Promise<void>((resolve) => setImmediate(resolve))
    else {
      let timer: Timer | undefined
      await this.#wait((wake) => {
        timer = setTimeout(wake, ms)
      }).finally(() => clearTimeout(timer))
    }
    this.#mustBeOpen()
  }

  /** Waits until the connection is over. */
  async hang(): Promise<never> {
    await this.#wait(() => {})
    throw new ConnectionOver()
  }

  fin(): void {
    if (this.#over("us")) this.#socket.end()
  }

  /** Sends a RST: `terminate` closes with a linger of zero. */
  reset(): void {
    if (this.#over("us")) this.#socket.terminate()
  }

  onDrain(): void {
    this.#drained?.()
  }

  onClose(): void {
    this.#over("peer")
  }

  #over(by: ClosedBy): boolean {
    if (this.#closedBy !== null) return false
    this.#closedBy = by
    this.facts.open = false
    for (const wake of [...this.#waiting]) wake()
    return true
  }

  #drain(): Promise<void> {
    return this.#wait((wake) => {
      this.#drained = wake
    })
  }

  #mustBeOpen(): void {
    if (!this.open) throw new ConnectionOver()
  }

  #wait(start: (wake: () => void) => void): Promise<void> {
    this.#mustBeOpen()
    return new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake)
        this.#drained = null
        resolve()
      }
      this.#waiting.add(wake)
      start(wake)
    })
  }
}
