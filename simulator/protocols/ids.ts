/** An id as vendors make them: unguessable, without separators. */
export function shortId(): string {
  return Bun.randomUUIDv7("base64url")
}

/** A decimal number of so many digits, as text. */
export function digitsId(length: number): string {
  return randomOf("0123456789", length).replace(/^0/, "1")
}

/** So many characters, each one of these. */
export function randomOf(characters: string, length: number): string {
  return Array.from(
    crypto.getRandomValues(new Uint32Array(length)),
    (random) => characters[random % characters.length],
  ).join("")
}

/** Letters and digits only, where a vendor's ids have no others. */
export function plainId(): string {
  return Bun.randomUUIDv7("hex").replaceAll("-", "")
}
