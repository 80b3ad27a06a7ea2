const apiKeyPrefix = "sk-tg-"
const apiKeyLength = 43
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** The largest multiple of 62 that a byte can hold; bytes from here on would favour the first letters. */
const unbiasedBelow = 256 - (256 % base62.length)

/** An identifier that sorts by the time it was made. */
export function newId(): string {
  return Bun.randomUUIDv7()
}

export function newRequestId(): string {
  return `req_${Bun.randomUUIDv7().replaceAll("-", "")}`
}

/** An API key with 256 bits of randomness. */
export function newApiKey(): string {
  let secret = ""
  while (secret.length < apiKeyLength) {
    for (const byte of crypto.getRandomValues(new Uint8Array(apiKeyLength))) {
      if (byte < unbiasedBelow && secret.length < apiKeyLength) secret += base62[byte % base62.length]
    }
  }
  return apiKeyPrefix + secret
}
