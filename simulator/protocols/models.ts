import { jsonReply } from "../wire/reply.ts"
import type { Protocol } from "./protocol.ts"

/** Any fixed moment does; clients only show it. */
const created = 1_760_000_000

export const models: Protocol = {
  method: "GET",
  ending: "/models",
  answer: ({ models: ids, vendor }) =>
    jsonReply(200, { object: "list", data: ids.map((id) => ({ id, object: "model", created, owned_by: vendor })) }),
}
