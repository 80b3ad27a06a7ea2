import { jsonReply, type Reply } from "../../wire/reply.ts"
import { plainId } from "../ids.ts"

/** What Vidu says with each status: reason, message. */
const usual: Readonly<Record<number, readonly [reason: string, message: string]>> = {
  400: ["FieldInvalid", "invalid field"],
  401: ["Unauthorized", "invalid token"],
  402: ["CreditInsufficient", "credits are not enough"],
  403: ["Forbidden", "permission denied"],
  404: ["NotFound", "not found"],
  429: ["QuotaExceeded", "too many requests"],
  503: ["SystemThrottling", "the system is busy"],
}

export function viduError(code: number, reason: string, message: string): Reply {
  return jsonReply(code, { code, reason, message, metadata: { trace_id: plainId() } })
}

export function viduRefusal(status: number, message?: string): Reply {
  const [reason, words] = usual[status] ?? ["InternalServiceFailure", "internal error"]
  return viduError(status, reason, message ?? words)
}
