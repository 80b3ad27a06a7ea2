import type { RecordedCall } from "./calls.ts"
import type { Connection } from "./wire/connection.ts"

/** A call while it is open; what is filled in as it goes. */
export type OpenCall = { -readonly [K in keyof RecordedCall]: RecordedCall[K] }

/** One request being answered: everything that may be done to its connection, with the record kept up to date. */
export class Exchange {
  readonly keepAlive: boolean
  readonly #connection: Connection
  readonly #call: OpenCall | null
  readonly #count = (bytes: number): void => {
    if (this.#call !== null) this.#call.bytesSent += bytes
  }

  /** `call` is null for the simulator's own control requests, which are not recorded. */
  constructor(connection: Connection, call: OpenCall | null, keepAlive: boolean) {
    this.#connection = connection
    this.#call = call
    this.keepAlive = keepAlive
  }

  write(bytes: Uint8Array): Promise<void> {
    return this.#connection.write(bytes, this.#count)
  }

  sleep(ms: number): Promise<void> {
    return this.#connection.sleep(ms)
  }

  hang(): Promise<never> {
    return this.#connection.hang()
  }

  /** The answer is complete; the connection goes on unless the client asked otherwise. */
  finish(): void {
    this.#finished()
    if (!this.keepAlive) this.#connection.fin()
  }

  fin(): void {
    this.#finished()
    this.#connection.fin()
  }

  reset(): void {
    this.#finished()
    this.#connection.reset()
  }

  #finished(): void {
    if (this.#call === null || !this.#connection.open) return
    this.#call.finished = true
    this.#call.endedAt = performance.now()
  }
}
