import type { Conversation } from "./conversation.ts"

const charactersPerToken = 4
/** How much of a message the default answer quotes. */
const quotedCharacters = 60

/** What a lively model says of its own accord. */
export function sentence(ask: Pick<Conversation, "lastRole" | "lastText" | "lastUserText">): string {
  if (ask.lastRole === "tool") return `The tool answered ${quoted(ask.lastText)}, so that is what I would go by.`
  if (ask.lastUserText === "") return "Hello! I am a simulated model. How can I help you today?"
  return `You said ${quoted(ask.lastUserText)}. I am a simulated model, and I am happy to help with that.`
}

/** Repeated until there is something for every piece. */
export function atLeast(characters: number, text: string): string {
  return text.length >= characters ? text : `${text} `.repeat(Math.ceil(characters / text.length))
}

/** The end of a text, cut between code points so that no half emoji is made. */
export function quoted(text: string): string {
  const points = [...text.slice(-4 * quotedCharacters).trim()]
  const tail = points.slice(-quotedCharacters).join("")
  return `"${points.length > quotedCharacters ? "…" : ""}${tail}"`
}

export function tokens(characters: number): number {
  return Math.ceil(characters / charactersPerToken)
}

/** As many pieces as told, otherwise word by word. */
export function spoken(text: string, pieces: number | undefined): string[] {
  return pieces === undefined ? words(text) : inPieces(text, pieces)
}

/** Each word with the white space after it. */
export function words(text: string): string[] {
  return text.match(/\s*\S+\s*/g) ?? (text === "" ? [] : [text])
}

/** As many pieces as told, cut between code points; a text shorter than that gives one for each code point. */
export function inPieces(text: string, count: number): string[] {
  const points = [...text]
  const pieces = Math.min(count, points.length)
  const start = (piece: number): number => Math.floor((piece * points.length) / pieces)
  return Array.from({ length: pieces }, (_, piece) => points.slice(start(piece), start(piece + 1)).join(""))
}
