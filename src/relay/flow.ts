import { GatewayError } from "../core/errors.ts"
import { joinBytes } from "../lib/bytes.ts"
import type { BegunFlow } from "./answer.ts"
import type { StreamEnd } from "./delivery.ts"

export interface FlowTerms {
  readonly requestId: string
  /** When the answer must be over, by `performance.now()`. */
  readonly deadline: number
  /** Called exactly once, before the last byte is handed over, or when the caller has left. */
  onEnd(end: StreamEnd): Promise<void>
  /** Hands out a function that ends this answer, for an instance that can wait no longer. */
  onStart(cut: () => void): void
}

/**
 * Passes an answer that is no event stream on as it comes: pictures, audio, large JSON. It cannot say in band that it broke,
 * so a broken one ends by closing the connection, never as if it were whole.
 */
export function passOn(flow: BegunFlow, terms: FlowTerms): Response {
  const passing = new Flow(flow, terms)
  terms.onStart(() => passing.cut())
  const body = new ReadableStream<Uint8Array>(passing, { highWaterMark: 0 })
  return new Response(body, { status: flow.status, headers: { ...flow.headers, "x-request-id": terms.requestId } })
}

type Controller = ReadableStreamDefaultController<Uint8Array>

/** The source behind the caller's response body: `pull` runs when the caller wants more, `cancel` when it has left. */
class Flow {
  readonly #flow: BegunFlow
  readonly #terms: FlowTerms
  readonly #timer: Timer
  readonly #held: HeldBack
  #first: Uint8Array | null
  #controller: Controller | null = null
  #over = false

  constructor(flow: BegunFlow, terms: FlowTerms) {
    this.#flow = flow
    this.#terms = terms
    this.#first = flow.first
    this.#held = new HeldBack(flow.meter !== null)
    const late = new GatewayError("request_timeout", "the answer took longer than a request may take in all")
    this.#timer = setTimeout(() => this.#breakOff(late), Math.max(0, terms.deadline - performance.now()))
  }

  start(controller: Controller): void {
    this.#controller = controller
  }

  async pull(controller: Controller): Promise<void> {
    for (;;) {
      const chunk = await this.#read()
      if (this.#over || chunk === "broken") return
      if (chunk === "whole") return this.#conclude(controller)
      const passed = this.#held.after(chunk)
      if (passed.length > 0) return controller.enqueue(passed)
    }
  }

  /** The caller has left. What is charged by the answer is read to its end all the same. */
  async cancel(): Promise<void> {
    if (this.#flow.meter === null) {
      this.#flow.abort()
      return this.#end({ ending: "client_gone", error: null })
    }
    this.#readOn().catch(() => {})
  }

  cut(): void {
    this.#breakOff(new GatewayError("backend_unavailable", "this instance is shutting down and can wait no longer"))
  }

  /** The answer is whole; its last byte goes out when the request is settled. */
  async #conclude(controller: Controller): Promise<void> {
    await this.#end({ ending: "completed", error: null })
    controller.enqueue(this.#held.rest())
    controller.close()
  }

  async #readOn(): Promise<void> {
    for (;;) {
      const chunk = await this.#read()
      if (this.#over || chunk === "broken") return
      if (chunk === "whole") return this.#end({ ending: "client_gone", error: null })
    }
  }

  async #read(): Promise<Uint8Array | "whole" | "broken"> {
    const chunk = this.#first ?? (await this.#next())
    this.#first = null
    if (typeof chunk !== "string") this.#flow.meter?.push(chunk)
    if (chunk === "broken")
      this.#breakOff(new GatewayError("upstream_stream_truncated", "the upstream's answer broke off"))
    return chunk
  }

  async #next(): Promise<Uint8Array | "whole" | "broken"> {
    try {
      const { done, value } = await this.#flow.reader.read()
      return done ? "whole" : value
    } catch {
      return "broken"
    }
  }

  #breakOff(error: GatewayError): void {
    if (this.#over) return
    this.#flow.abort()
    this.#controller?.error(error)
    this.#end({ ending: "failed", error: error.code }).catch(() => {})
  }

  async #end(how: StreamEnd): Promise<void> {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#timer)
    await this.#terms.onEnd(how)
  }
}

/** Keeps the newest bytes back, because nobody can know whether they are the last ones. */
class HeldBack {
  readonly #wholeChunks: boolean
  #bytes: Uint8Array = new Uint8Array(0)

  /** Sound is played as it comes, so of it a single byte is held; of other answers the newest chunk, which takes no copy. */
  constructor(wholeChunks: boolean) {
    this.#wholeChunks = wholeChunks
  }

  /** What may go on now that this chunk has come. */
  after(chunk: Uint8Array): Uint8Array {
    if (chunk.length === 0) return chunk
    const before = this.#bytes
    this.#bytes = this.#wholeChunks ? chunk : chunk.subarray(-1)
    return this.#wholeChunks ? before : joinBytes([before, chunk.subarray(0, -1)])
  }

  rest(): Uint8Array {
    return this.#bytes
  }
}
