import { newId } from "../lib/ids.ts"

const longestUserId = 64
const callIdDigits = 24
const legibleCallId = /^[A-Za-z0-9_-]+$/

function sha256(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex")
}

/** The caller's name for a user; a long one goes as its digest, because vendors bound its length. */
export function userIdFor(user: string): string {
  return user.length > longestUserId ? sha256(user) : user
}

/** The vendor refuses ids with other characters, which conversations begun on other models do hold. Equal ids stay equal. */
export function toolUseIdFor(callId: string): string {
  return legibleCallId.test(callId) ? callId : `toolu_${sha256(callId).slice(0, callIdDigits)}`
}

/** The completion's id, recognisable as the vendor's message id. */
export function completionIdFor(messageId: unknown): string {
  const known = typeof messageId === "string" ? messageId.replace(/^msg_/, "") : ""
  return `chatcmpl-${known === "" ? freshDigits() : known}`
}

/** The vendor's id of a call, or a new one where an upstream forgot it. */
export function callIdFor(toolUseId: unknown): string {
  return typeof toolUseId === "string" && toolUseId !== "" ? toolUseId : `call_${freshDigits()}`
}

function freshDigits(): string {
  return newId().replaceAll("-", "")
}
