import { isObject } from "../core/json.ts"

/** The longest text that is told on. */
export const longestText = 2048

/** More than any error has to say, and little enough to take a page apart. */
const longestPage = 16_384

/** Words that are wrapped deeper than this are not looked for. */
const deepest = 8

/** The best words in an error's body, parsed JSON or text that is none: one line without markup; null where there are none. */
export function errorText(body: unknown): string | null {
  const text = (textIn(body) ?? "")
    .slice(0, longestPage)
    .replace(/<(script|style)\b.*?<\/\1>/gis, " ")
    .replace(/<[^<>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim()
  return text === "" ? null : text.slice(0, longestText)
}

/** Upstreams and the proxies before them put the words in many places. */
function textIn(body: unknown, depth = 0): string | null {
  if (typeof body === "string") return body
  if (depth > deepest) return null
  if (Array.isArray(body)) return textIn(body[0], depth + 1)
  if (!isObject(body)) return null
  for (const name of ["message", "error", "detail", "msg"]) {
    const text = textIn(body[name], depth + 1)
    if (text !== null && text !== "") return text
  }
  return null
}
