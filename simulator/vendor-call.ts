import { Exchange, type OpenCall } from "./exchange.ts"
import { perform } from "./perform.ts"
import { unauthorizedReply } from "./protocols/vendor-errors.ts"
import type { Incoming } from "./session.ts"
import type { VendorState } from "./vendor.ts"
import type { Connection } from "./wire/connection.ts"
import { sendReply } from "./wire/reply.ts"
import { type HeaderPair, type RequestHead, valuesOf } from "./wire/request-parser.ts"

const noBytes = new Uint8Array(0)

/** Records a call to a vendor as it comes in, and answers it as the vendor was told to behave. */
export function receiveCall(
  vendor: VendorState,
  head: RequestHead,
  connection: Connection,
  requestNumber: number,
): Incoming {
  const call = newCall(head, connection, requestNumber)
  const parts: Uint8Array[] = []
  const hash = new Bun.CryptoHasher("sha256")
  vendor.begin(call, () => connection.reset())
  return {
    body(bytes) {
      parts.push(bytes)
      hash.update(bytes)
      call.bodyLength += bytes.length
    },
    async answer() {
      const body = Buffer.concat(parts.splice(0))
      call.bodyComplete = true
      call.bodySha256 = hash.digest("hex")
      if (vendor.keepBodies) call.body = body
      await answerCall(vendor, call, body, new Exchange(connection, call, head.keepAlive))
    },
    settle() {
      vendor.end(call)
      if (call.endedAt !== null) return
      call.endedAt = performance.now()
      call.closedByPeer = connection.closedBy === "peer"
    },
  }
}

async function answerCall(vendor: VendorState, call: OpenCall, body: Uint8Array, exchange: Exchange): Promise<void> {
  if (vendor.isDown()) {
    call.answeredWith = "down"
    return exchange.reset()
  }
  const credentials = credentialsOf(call.headers)
  if (!vendor.accepts(credentials)) {
    call.answeredWith = "unauthorized"
    return await sendReply(exchange, unauthorizedReply(credentials[0]))
  }
  const step = vendor.nextStep()
  call.answeredWith = step.kind
  const { method, path, headers } = call
  await perform(step, { vendor: vendor.name, models: vendor.models, method, path, headers, body }, exchange)
}

/** Vendors differ in where the key stands: after a scheme in `authorization`, or alone in a header of their own. */
function credentialsOf(headers: readonly HeaderPair[]): string[] {
  const schemes = valuesOf(headers, "authorization").map((value) => value.replace(/^\S+ +/, ""))
  return [...schemes, ...["x-api-key", "api-key", "x-goog-api-key", "x-key"].flatMap((name) => valuesOf(headers, name))]
}

function newCall(head: RequestHead, connection: Connection, requestNumber: number): OpenCall {
  return {
    method: head.method,
    path: head.target,
    headers: head.headers,
    body: noBytes,
    bodyLength: 0,
    bodySha256: "",
    bodyComplete: false,
    answeredWith: "",
    at: performance.now(),
    endedAt: null,
    bytesSent: 0,
    finished: false,
    closedByPeer: false,
    connection: connection.facts,
    requestOnConnection: requestNumber,
  }
}
