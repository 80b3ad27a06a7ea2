import { GatewayError } from "../core/errors.ts"
import type { BegunFlow } from "./answer.ts"
import type { StreamEnd } from "./delivery.ts"

export interface FlowTerms {
  readonly requestId: string
  /** When the answer must be over, by `performance.now()`. */
  readonly deadline: number
  /** Called exactly once, when the last byte was handed over or the caller has left. */
  onEnd(end: StreamEnd): Promise<void>
  /** Hands out a function that ends this answer, for an instance that can wait no longer. */
  onStart(cut: () => void): void
}

/**
 * Passes an answer that is no event stream on as it comes: pictures, audio, large JSON. It cannot say in band that it broke,
 * so a broken one ends by closing the connection, never as if it were whole.
 */
export function passOn(flow: BegunFlow, terms: FlowTerms): Response {
  let first: Uint8Array | null = flow.first
  let over = false
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null
  const end = async (how: StreamEnd): Promise<void> => {
    if (over) return
    over = true
    clearTimeout(timer)
    await terms.onEnd(how)
  }
  const breakOff = (error: GatewayError): void => {
    if (over) return
    flow.abort()
    controller?.error(error)
    end({ ending: "failed", error: error.code }).catch(() => {})
  }
  const timer = setTimeout(
    () => breakOff(new GatewayError("request_timeout", "the answer took longer than a request may take in all")),
    Math.max(0, terms.deadline - performance.now()),
  )
  terms.onStart(() =>
    breakOff(new GatewayError("backend_unavailable", "this instance is shutting down and can wait no longer")),
  )
  const body = new ReadableStream<Uint8Array>(
    {
      start(given) {
        controller = given
      },
      async pull(sink) {
        if (first !== null) {
          sink.enqueue(first)
          first = null
          return
        }
        const chunk = await flow.reader.read().catch(() => null)
        if (over) return
        if (chunk === null)
          return breakOff(new GatewayError("upstream_stream_truncated", "the upstream's answer broke off"))
        if (!chunk.done) return sink.enqueue(chunk.value)
        await end({ ending: "completed", error: null })
        sink.close()
      },
      async cancel() {
        flow.abort()
        await end({ ending: "client_gone", error: null })
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { status: flow.status, headers: { ...flow.headers, "x-request-id": terms.requestId } })
}
