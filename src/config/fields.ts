import { longestTimeoutMs } from "../core/timeouts.ts"
import { canonicalDecimal, decimalPlaces, wholePart } from "../lib/decimal.ts"
import { parseDuration } from "../lib/duration.ts"

/*
 * What a single text value must look like. Each check answers null, or what is wrong as the end of a sentence
 * that begins with the field's name; the value itself is never repeated here, it may be a secret.
 */

export const longestName = 200
export const longestEmail = 254
export const shortestAccountKey = 16
export const longestSecret = 4096
export const moneyDecimals = 9
export const rateDecimals = 30
/** In dollars. Billionths of it still fit a signed 64-bit integer. */
export const moneyLimit = 9_000_000_000n

const unprintable = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u
const edgeSpace = /^\s|\s$/

function plainTextProblem(value: string, longest: number): string | null {
  if (value === "") return "must not be empty"
  if (unprintable.test(value)) return "must not contain line breaks or other control characters"
  if (edgeSpace.test(value)) return "must not begin or end with a space"
  if ([...value].length > longest) return `must have at most ${longest} characters`
  return null
}

export function nameProblem(value: string): string | null {
  return plainTextProblem(value, longestName)
}

/** A secret that travels in a header; vendors decide how long theirs are. */
export function credentialProblem(value: string): string | null {
  const problem = plainTextProblem(value, longestSecret)
  if (problem !== null) return problem
  return /^[\x21-\x7e]+$/.test(value) ? null : "must contain only printable ASCII characters without spaces"
}

export function accountKeyProblem(value: string): string | null {
  const problem = credentialProblem(value)
  if (problem !== null) return problem
  return value.length < shortestAccountKey ? `must have at least ${shortestAccountKey} characters` : null
}

export function passwordProblem(value: string): string | null {
  return plainTextProblem(value, longestSecret)
}

export function emailProblem(value: string): string | null {
  const sane = /^[^\s@<>"(),:;\\]+@[^\s@<>"(),:;\\]+$/.test(value) && !unprintable.test(value)
  return sane && value.length <= longestEmail ? null : "must be an e-mail address such as ada@example.com"
}

export function baseUrlProblem(value: string): string | null {
  const url = URL.parse(value)
  if (url === null || !/^https?:\/\/[^/]/i.test(value) || /\s/.test(value)) return "must be an http or https address"
  if (url.username !== "" || url.password !== "") return "must not carry a user name or password; use api_key"
  if (/[?#]/.test(value)) return "must not have a query or a fragment"
  return null
}

/** What a browser sends as `Origin`: scheme, host and port, nothing behind them. */
export function originProblem(value: string): string | null {
  if (value === "*") return null
  const isOrigin = /^https?:\/\//.test(value) && URL.canParse(value) && new URL(value).origin === value
  return isOrigin ? null : "must be an origin such as https://app.example.com, without a path, or *"
}

export const durationMessage = "must be a duration such as 60s, 500ms, 30m or 2h"

export function durationProblem(value: string): string | null {
  const ms = parseDuration(value)
  if (ms === null) return durationMessage
  if (ms === 0) return "must be longer than nothing"
  return ms > longestTimeoutMs ? "must be shorter than 25 days (2^31 milliseconds)" : null
}

export const forever = "forever"
export const retentionMessage = `must be a duration such as 90d or 12h, or the word ${forever}`
const shortestRetentionMs = 3_600_000
/** A hundred years. */
const longestRetentionMs = 36_500 * 24 * 3_600_000

export function retentionProblem(value: string): string | null {
  if (value === forever) return null
  const ms = parseDuration(value)
  if (ms === null) return retentionMessage
  if (ms < shortestRetentionMs) return "must be at least 1h"
  return ms > longestRetentionMs ? `must be at most 36500d, or the word ${forever}` : null
}

/** Set by the gateway or by the connection itself, or a place for credentials that `api_key` fills. */
const reservedHeaders = new Set(
  (
    "host content-length content-type content-encoding transfer-encoding connection keep-alive te trailer upgrade expect " +
    "proxy-connection proxy-authenticate proxy-authorization accept-encoding cookie set-cookie " +
    "authorization x-api-key api-key x-goog-api-key x-key"
  ).split(" "),
)

export function headerNameProblem(name: string): string | null {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) || name.length > longestName) return "is not a valid header name"
  return reservedHeaders.has(name.toLowerCase()) ? "is a header that the gateway sets itself" : null
}

export function headerValueProblem(value: string): string | null {
  if (!/^[\t\x20-\x7e\xa0-\xff]*$/.test(value)) return "must not contain line breaks or characters outside Latin-1"
  if (edgeSpace.test(value)) return "must not begin or end with a space"
  return value.length > longestSecret ? `must have at most ${longestSecret} characters` : null
}

/** A price or a factor: never below zero, and much finer than money. */
export function rateProblem(text: string): string | null {
  const decimal = canonicalDecimal(text)
  if (decimal === null) return "must be a decimal number such as 1.25"
  if (decimal.startsWith("-")) return "must not be negative"
  if (decimalPlaces(decimal) > rateDecimals) return `must have at most ${rateDecimals} decimals`
  return wholePart(decimal) >= moneyLimit ? `must be less than ${moneyLimit}` : null
}

export function moneyProblem(text: string): string | null {
  const decimal = canonicalDecimal(text)
  if (decimal === null) return "must be an amount in dollars such as 100 or 99.95"
  if (decimalPlaces(decimal) > moneyDecimals) return `must have at most ${moneyDecimals} decimals`
  return wholePart(decimal) >= moneyLimit ? `must be between -${moneyLimit} and ${moneyLimit}` : null
}
