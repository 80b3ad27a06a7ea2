import { readBehaviours } from "./behaviour.ts"
import { callAsJson } from "./calls.ts"
import { Exchange } from "./exchange.ts"
import type { Incoming } from "./session.ts"
import type { SimulatedVendor } from "./vendor.ts"
import type { Connection } from "./wire/connection.ts"
import { jsonReply, type Reply, sendReply } from "./wire/reply.ts"
import type { RequestHead } from "./wire/request-parser.ts"

/** Everything under this path steers the simulator and is never taken for a vendor. */
export const controlPrefix = "/_sim/"

const usage =
  "use POST /_sim/vendors/{name}/behaviour with an array, GET /_sim/vendors/{name}/calls or /submits, or DELETE /_sim/vendors/{name}"

/** Receives a control request: the same steering as from a test, over HTTP. */
export function receiveControl(
  vendorOf: (name: string) => SimulatedVendor,
  head: RequestHead,
  connection: Connection,
): Incoming {
  const parts: Uint8Array[] = []
  return {
    body: (bytes) => void parts.push(bytes),
    answer: () =>
      sendReply(new Exchange(connection, null, head.keepAlive), controlReply(vendorOf, head, Buffer.concat(parts))),
    settle() {},
  }
}

function controlReply(vendorOf: (name: string) => SimulatedVendor, head: RequestHead, body: Buffer): Reply {
  const [, name, what = ""] = /^\/_sim\/vendors\/([\w.-]+)(?:\/(behaviour|calls|submits))?$/.exec(head.target) ?? []
  if (name === undefined) return refusal(404, `no such path: ${head.target}; ${usage}`)
  const vendor = vendorOf(name)
  switch (`${head.method} ${what}`) {
    case "POST behaviour":
      return setBehaviour(vendor, body.toString("utf8"))
    case "GET calls":
      return jsonReply(200, vendor.calls.map(callAsJson))
    case "GET submits":
      return jsonReply(200, Object.fromEntries(vendor.memory.submits))
    case "DELETE behaviour":
    case "DELETE calls":
    case "DELETE ":
      vendor.reset()
      return jsonReply(200, { vendor: name, reset: true })
    default:
      return refusal(405, `${head.method} is not possible here; ${usage}`)
  }
}

function setBehaviour(vendor: SimulatedVendor, text: string): Reply {
  try {
    const steps = readBehaviours(JSON.parse(text))
    vendor.behave(...steps)
    return jsonReply(200, { vendor: vendor.name, steps: steps.length })
  } catch (error) {
    return refusal(400, error instanceof Error ? error.message : String(error))
  }
}

function refusal(status: number, message: string): Reply {
  return jsonReply(status, { error: message })
}
