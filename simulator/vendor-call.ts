import { isAnswer } from "./behaviour.ts"
import { Exchange, type OpenCall } from "./exchange.ts"
import { perform } from "./perform.ts"
import { credentialsOf } from "./protocols/credentials.ts"
import type { Protocol, VendorRequest } from "./protocols/protocol.ts"
import { protocolOf } from "./protocols/registry.ts"
import { unauthorizedReply } from "./protocols/vendor-errors.ts"
import type { Incoming } from "./session.ts"
import type { VendorState } from "./vendor.ts"
import type { Connection } from "./wire/connection.ts"
import { sendReply } from "./wire/reply.ts"
import type { RequestHead } from "./wire/request-parser.ts"

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
  const { method, path, headers } = call
  const request = { vendor: vendor.name, models: vendor.models, method, path, headers, body, memory: vendor.memory }
  const protocol = protocolOf(request)
  const credentials = shownTo(protocol, request, vendor)
  if (protocol?.open !== true && (credentials === null || !vendor.accepts(credentials))) {
    call.answeredWith = "unauthorized"
    const refusal = protocol?.unauthorized?.(request) ?? protocol?.refuse?.(401)
    return await sendReply(exchange, refusal ?? unauthorizedReply(credentialsOf(headers)[0]))
  }
  const told = vendor.nextStep()
  const step = isAnswer(told) ? (protocol?.instead?.(request) ?? told) : told
  call.answeredWith = step.kind
  await perform(step, request, exchange)
}

/** The credentials that count for an endpoint; null where it insists on one and finds none. */
function shownTo(
  protocol: Protocol | undefined,
  request: VendorRequest,
  vendor: VendorState,
): readonly string[] | null {
  if (protocol?.credential === undefined) return credentialsOf(request.headers)
  const key = protocol.credential(request, vendor.expectedKey())
  return key === undefined ? null : [key]
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
