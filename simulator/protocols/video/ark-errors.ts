import { jsonReply, type Reply } from "../../wire/reply.ts"
import { plainId } from "../ids.ts"

interface ArkProblem {
  readonly code: string
  readonly message: string
  readonly param?: string
}

/** What Ark says with each status: code, message, type. */
const usual: Readonly<Record<number, readonly [code: string, message: string, type: string]>> = {
  400: ["InvalidParameter", "A parameter specified in the request is not valid.", "BadRequest"],
  401: ["AuthenticationError", "The API key in the request is missing or invalid.", "Unauthorized"],
  403: ["AccountOverdueError", "The request failed because your account has an overdue balance.", "Forbidden"],
  404: ["ResourceNotFound", "The specified resource is not found.", "NotFound"],
  409: ["InvalidAction", "The operation is not allowed in this state.", "Conflict"],
  429: ["RateLimitExceeded.EndpointRPMExceeded", "Requests per minute limit exceeded.", "TooManyRequests"],
  503: ["ServerOverloaded", "The service is currently unable to handle additional requests.", "ServiceUnavailable"],
}

export function arkError(status: number, problem?: ArkProblem): Reply {
  const internal = [
    "InternalServiceError",
    "The service encountered an unexpected internal error.",
    "InternalServerError",
  ]
  const [usualCode, words, type] = usual[status] ?? internal
  const { code = usualCode, message = words, param = "" } = problem ?? {}
  return jsonReply(status, { error: { code, message: `${message} Request id: ${plainId()}`, param, type } })
}

export function arkRefusal(status: number, message?: string): Reply {
  return arkError(
    status,
    message === undefined ? undefined : { code: usual[status]?.[0] ?? "InvalidParameter", message },
  )
}
