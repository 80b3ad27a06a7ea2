import { createHash, timingSafeEqual } from "node:crypto"
import { GatewayError } from "../core/errors.ts"

const scheme = "Bearer "

/**
 * Tells whether a request carries the admin token. Digests are compared, in a time that tells neither how much of the
 * token was right nor how long it is. Without a token configured nobody passes.
 */
export function adminCheck(token: string | null): (request: Request) => boolean {
  if (token === null) return () => false
  const wanted = digest(token)
  return ({ headers }) => {
    const authorization = headers.get("authorization")
    if (authorization === null || !authorization.startsWith(scheme)) return false
    return timingSafeEqual(digest(authorization.slice(scheme.length)), wanted)
  }
}

/** One text for every cause, so that a refusal tells nothing about the token or whether there is one. */
export function notAdmin(): GatewayError {
  return new GatewayError(
    "invalid_api_key",
    "Missing or invalid admin token. Send it as 'Authorization: Bearer <token>'; API keys of accounts do not work here.",
  )
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest()
}
