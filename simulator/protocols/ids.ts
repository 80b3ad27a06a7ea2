/** An id as vendors make them: unguessable, without separators. */
export function shortId(): string {
  return Bun.randomUUIDv7("base64url")
}

/** Letters and digits only, where a vendor's ids have no others. */
export function plainId(): string {
  return Bun.randomUUIDv7("hex").replaceAll("-", "")
}
