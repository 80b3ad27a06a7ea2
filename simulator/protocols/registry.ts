import type { Behaviour } from "../behaviour.ts"
import type { Reply } from "../wire/reply.ts"
import { chat } from "./chat.ts"
import { models } from "./models.ts"
import type { Protocol, VendorRequest } from "./protocol.ts"
import { errorReply } from "./vendor-errors.ts"

/** Every protocol the simulator speaks; a new one is a file and a line here. */
const protocols: readonly Protocol[] = [chat, models]

/** What a healthy vendor answers to this request. */
export function healthyReply(request: VendorRequest, step: Behaviour): Reply {
  const path = request.path.split("?", 1)[0] ?? ""
  const protocol = protocols.find(({ ending }) => path.endsWith(ending))
  const shown = path.slice(request.vendor.length + 1)
  if (protocol === undefined) return errorReply(404, { message: `Invalid URL (${request.method} ${shown})` })
  if (protocol.method !== request.method) {
    return errorReply(405, { message: `Not allowed to ${request.method} on ${shown}.`, code: "method_not_supported" })
  }
  return protocol.answer(request, step)
}
