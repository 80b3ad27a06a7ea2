import { createHmac } from "node:crypto"
import { parseObject } from "../../../src/core/json.ts"
import type { Reply } from "../../wire/reply.ts"
import { valuesOf } from "../../wire/request-parser.ts"
import type { VendorRequest } from "../protocol.ts"
import { bearer } from "./fields.ts"
import { klingError } from "./kling-errors.ts"

/**
 * Kling takes an API key as it is, or a token that is signed with an older pair of keys. A key to expect that is written
 * `ACCESS:SECRET` is such a pair.
 */
export function klingCredential(request: VendorRequest, expected: string | null): string | undefined {
  const key = bearer(request)
  const token = key === undefined ? null : readToken(key)
  if (key === undefined || token === null) return key
  if (timeProblem(token) !== null) return undefined
  const [access = "", secret] = expected?.split(":") ?? []
  if (secret === undefined) return key
  const signature = createHmac("sha256", secret).update(token.signed).digest("base64url")
  return token.issuer === access && token.signature === signature ? (expected ?? undefined) : undefined
}

export function klingUnauthorized(request: VendorRequest): Reply {
  if (valuesOf(request.headers, "authorization").length === 0) return klingError(1001)
  const key = bearer(request)
  const token = key === undefined ? null : readToken(key)
  return klingError((token === null ? null : timeProblem(token)) ?? 1002)
}

interface Token {
  readonly issuer: unknown
  readonly expires: unknown
  readonly notBefore: unknown
  readonly signed: string
  readonly signature: string
}

function readToken(key: string): Token | null {
  const [header = "", payload = "", signature] = key.split(".")
  const claims = parseObject(Buffer.from(payload, "base64url").toString())
  const isToken = parseObject(Buffer.from(header, "base64url").toString())?.alg === "HS256"
  if (!isToken || claims === null || signature === undefined) return null
  const { iss: issuer, exp: expires, nbf: notBefore } = claims
  return { issuer, expires, notBefore, signed: `${header}.${payload}`, signature }
}

/** The code for a token that is used at the wrong time. */
function timeProblem({ expires, notBefore }: Token): number | null {
  const now = Date.now() / 1000
  if (typeof expires !== "number" || expires <= now) return 1004
  return typeof notBefore === "number" && notBefore > now ? 1003 : null
}
