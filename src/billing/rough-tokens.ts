/** What English text and JSON come to, about. */
const bytesPerToken = 4

/** Base64 of this length is a picture, a sound or a file, not something to read. */
const shortestMedia = 1024
/** So many bytes at either end are looked at one by one; of those between it is enough to look at some. */
const closeLook = 256
const stride = 64

const quote = 0x22

/** Tokens of a text that is not counted. */
export function roughTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken)
}

/** Tokens of a JSON request that is not read: by its length, media in it aside. */
export function roughPromptTokens(body: Uint8Array): number {
  return Math.ceil((body.length - mediaBytes(body)) / bytesPerToken)
}

/** The length of all base64 that fills the rest of a string. A large body passes in milliseconds, whatever is in it. */
function mediaBytes(body: Uint8Array): number {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  let media = 0
  let end = -1
  // Whatever is long enough has one of these places inside.
  for (let at = shortestMedia - 1; at < bytes.length; at += shortestMedia) {
    if (!isBase64[bytes[at]!]) continue
    if (end < at) end = endOfString(bytes, at)
    const start = startOfRun(bytes, at)
    const stop = firstOther(bytes, start, end)
    if (stop === end && end - start >= shortestMedia) media += end - start
    at = Math.max(at, stop)
  }
  return media
}

function endOfString(bytes: Buffer, from: number): number {
  const found = bytes.indexOf(quote, from)
  return found < 0 ? bytes.length : found
}

/** Where the base64 around a place begins, as far as the place before this one would not have met it. */
function startOfRun(bytes: Buffer, at: number): number {
  let start = at
  while (start > 0 && start > at - shortestMedia && isBase64[bytes[start - 1]!]) start -= 1
  return start
}

/** The first byte seen that is no base64. */
function firstOther(bytes: Buffer, start: number, end: number): number {
  for (let at = start; at < end; ) {
    if (!isBase64[bytes[at]!]) return at
    at += at < start + closeLook || at >= end - closeLook ? 1 : stride
  }
  return end
}

/** Some write a slash in JSON with a backslash before it. */
const isBase64: readonly boolean[] = Array.from({ length: 256 }, (_, byte) =>
  /[A-Za-z0-9+/=_\\-]/.test(String.fromCharCode(byte)),
)
