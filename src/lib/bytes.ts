export const mebibyte = 1024 * 1024

const encoder = new TextEncoder()

export function utf8(text: string): Uint8Array {
  return encoder.encode(text)
}

/** The text of some bytes; broken UTF-8 becomes U+FFFD. */
export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")
}

/** One array of all parts; a single part is returned as it is. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0]!
  return Buffer.concat(parts as Uint8Array[])
}

/** Copies `bytes` with every occurrence of `secret` overwritten; returns the same object when there is none. */
export function blankOut(bytes: Uint8Array, secret: string, cover: string): Uint8Array {
  const needle = utf8(secret)
  const haystack = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = haystack.indexOf(needle)
  if (at < 0 || needle.length === 0) return bytes
  const parts: Uint8Array[] = []
  let from = 0
  for (; at >= 0; at = haystack.indexOf(needle, from)) {
    parts.push(haystack.subarray(from, at), utf8(cover))
    from = at + needle.length
  }
  parts.push(haystack.subarray(from))
  return joinBytes(parts)
}
