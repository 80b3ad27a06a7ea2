/** Longer than any key or token we issue; anything above is refused without being looked at. */
const longestCredential = 8192

/**
 * The caller's credential. `Authorization`, when present, is the credential, and only as `Bearer`, one space, token;
 * `x-api-key` counts only in its absence. Null: there is none in an accepted form.
 */
export function readCredential(headers: Headers): string | null {
  const authorization = headers.get("authorization")
  const token = authorization === null ? headers.get("x-api-key") : bearerToken(authorization)
  if (token === null || token.length === 0 || token.length > longestCredential) return null
  return token
}

function bearerToken(authorization: string): string | null {
  if (!authorization.startsWith("Bearer ")) return null
  const token = authorization.slice(7)
  return /^\S+$/.test(token) ? token : null
}
