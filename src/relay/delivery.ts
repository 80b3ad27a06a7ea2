import type { ErrorDialect } from "../core/endpoints.ts"
import { type ErrorCode, GatewayError } from "../core/errors.ts"
import type { Ending } from "../core/story.ts"
import type { TokenUsage } from "../core/usage.ts"
import { streamHeaders } from "../upstream/headers.ts"
import type { BegunStream } from "./answer.ts"
import { Watchdog } from "./watchdog.ts"

/** How long the rest of an upstream's body may take after its end marker, so that the connection can be used again. */
const remainderMs = 1000

/** A caller that hears nothing for this long is sent a ping, in dialects that have one. */
const pingAfterMs = 15_000

/** How long an event that looks like the last one is held back for another. */
const lingerMs = 1000

export interface StreamEnd {
  readonly ending: Ending
  readonly error: ErrorCode | null
}

export interface DeliveryTerms {
  readonly requestId: string
  readonly dialect: ErrorDialect
  readonly silenceMs: number
  /** When the stream must be over, by `performance.now()`. */
  readonly deadline: number
  /** Counts tokens where the upstream gave no usage. */
  count(): Promise<TokenUsage>
  /** Called exactly once, before the last frames are handed over, or when the caller has left. Rejects where it cannot be settled. */
  onEnd(end: StreamEnd): Promise<void>
  /** Hands out a function that ends this stream, for an instance that can wait no longer. */
  onStart(cut: () => void): void
}

/** Passes a begun stream on to the caller at the caller's pace. */
export function deliver(begun: BegunStream, terms: DeliveryTerms): Response {
  const delivery = new Delivery(begun, terms)
  terms.onStart(() => delivery.cut())
  // No queue of our own: the upstream is read only when the caller wants more.
  const body = new ReadableStream<Uint8Array>(delivery, { highWaterMark: 0 })
  return new Response(body, {
    status: 200,
    headers: { ...begun.headers, ...streamHeaders, "x-request-id": terms.requestId },
  })
}

type Controller = ReadableStreamDefaultController<Uint8Array>
type ReadResult = { readonly done: boolean; readonly value?: Uint8Array | undefined }

/** The source behind the caller's response body: `pull` runs when the caller wants more, `cancel` when it has left. */
class Delivery {
  readonly #begun: BegunStream
  readonly #terms: DeliveryTerms
  readonly #watchdog: Watchdog
  #controller: Controller | null = null
  #held: Uint8Array | null
  #cause: GatewayError | null = null
  #pulling = false
  #linger: Timer | null = null
  #pinging: Timer | null = null
  #lastHeard = 0
  /** The request was settled. */
  #over = false
  /** Nobody takes bytes any more. */
  #left = false

  constructor(begun: BegunStream, terms: DeliveryTerms) {
    this.#begun = begun
    this.#terms = terms
    this.#held = begun.held
    this.#watchdog = new Watchdog(terms.silenceMs, terms.deadline, (code) =>
      this.#stop(new GatewayError(code, timeoutText[code])),
    )
  }

  start(controller: Controller): void {
    this.#controller = controller
    const { ping } = this.#begun.tap
    if (ping === undefined) return
    this.#lastHeard = performance.now()
    this.#pinging = setInterval(() => this.#ping(ping), pingAfterMs / 3)
  }

  /** Written with callbacks made once, not with `await`, because this runs for every chunk. */
  pull(controller: Controller): Promise<void> | void {
    const { tap } = this.#begun
    if (this.#held !== null) {
      controller.enqueue(this.#held)
      this.#held = null
      if (!tap.ended) return this.#watchdog.resting(true)
    }
    this.#pulling = true
    this.#watchdog.waiting()
    return tap.ended ? this.#conclude() : this.#readOn()
  }

  /** The caller has left. */
  async cancel(): Promise<void> {
    this.#left = true
    this.#begun.abort()
    await this.#end({ ending: "client_gone", error: null })
  }

  cut(): void {
    this.#stop(new GatewayError("backend_unavailable", "this instance is shutting down and can wait no longer"))
  }

  #readOn(): Promise<void> {
    const { reader, tap, abort } = this.#begun
    if (tap.lingering) this.#linger = setTimeout(abort, lingerMs)
    return reader.read().then(this.#take, this.#conclude)
  }

  /** Frames of these dialects are whole events, so that one more fits between any two; it is no progress of the upstream's. */
  #ping(ping: Uint8Array): void {
    if (!this.#pulling || this.#left || performance.now() - this.#lastHeard < pingAfterMs) return
    this.#lastHeard = performance.now()
    this.#controller!.enqueue(ping)
  }

  readonly #take = ({ done, value }: ReadResult): Promise<void> | void => {
    const { tap } = this.#begun
    if (this.#linger !== null) clearTimeout(this.#linger)
    const before = tap.progress
    const passed = done ? tap.end() : tap.push(value!)
    if (passed !== null && !this.#left) this.#controller!.enqueue(passed)
    if (passed !== null && this.#pinging !== null) this.#lastHeard = performance.now()
    if (done || tap.ended) return this.#conclude()
    const progressed = tap.progress !== before
    if (passed === null) {
      if (progressed) this.#watchdog.progressed()
      return this.#readOn()
    }
    this.#pulling = false
    this.#watchdog.resting(progressed)
  }

  /**
   * No more bytes come: the stream ended, or the connection broke or was cut by us; what that means follows from how far it
   * had come. The request is settled before its last bytes are handed over.
   */
  readonly #conclude = async (): Promise<void> => {
    if (this.#over) return
    this.#watchdog.stop()
    const { tap, abort } = this.#begun
    if (tap.state === "complete") {
      const counted = tap.wantsCount ? await this.#terms.count() : null
      const unsettled = await this.#end(
        tap.failed ? { ending: "failed", error: "upstream_error" } : { ending: "completed", error: null },
      )
      this.#finish(unsettled === null ? tap.closing(counted) : this.#errorFrame(unsettled))
      this.#readRemainder().catch(() => {})
      return
    }
    const error = this.#cause ?? truncated()
    const told = tap.state === "error_sent"
    await this.#end({ ending: "failed", error: told ? "upstream_error" : error.code })
    this.#finish(told ? null : this.#errorFrame(error))
    abort()
  }

  #errorFrame(error: GatewayError): Uint8Array {
    return this.#begun.tap.errorFrame(error, this.#terms.requestId, this.#terms.dialect)
  }

  #finish(last: Uint8Array | null): void {
    if (this.#left) return
    if (last !== null) this.#controller!.enqueue(last)
    this.#controller!.close()
  }

  /** Ends the stream for a reason of ours: in band while the caller reads, by closing the connection if it does not. */
  #stop(error: GatewayError): void {
    if (this.#over) return
    this.#cause = error
    this.#begun.abort()
    if (this.#pulling) return
    this.#left = true
    this.#controller?.error(error)
    this.#end({ ending: "failed", error: error.code }).catch(() => {})
  }

  async #readRemainder(): Promise<void> {
    const { reader, abort } = this.#begun
    const timer = setTimeout(abort, remainderMs)
    try {
      while (!(await reader.read()).done);
    } finally {
      clearTimeout(timer)
    }
  }

  /** Settles the request, once; tells why where that cannot be done. */
  async #end(end: StreamEnd): Promise<GatewayError | null> {
    if (this.#over) return null
    this.#over = true
    this.#watchdog.stop()
    if (this.#linger !== null) clearTimeout(this.#linger)
    if (this.#pinging !== null) clearInterval(this.#pinging)
    try {
      await this.#terms.onEnd(end)
      return null
    } catch (error) {
      if (error instanceof GatewayError) return error
      throw error
    }
  }
}

const timeoutText = {
  stream_silence_timeout: "the upstream fell silent in mid-stream",
  stream_total_timeout: "the stream took longer than a stream may take in all",
} as const

function truncated(): GatewayError {
  return new GatewayError("upstream_stream_truncated", "the upstream's stream ended before it was complete")
}
