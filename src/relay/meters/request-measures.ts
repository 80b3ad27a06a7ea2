import type { Ask } from "../../admission/ask.ts"
import type { Measured } from "../../core/measured.ts"
import { traits } from "../../core/media-usage.ts"
import { textOf } from "../../lib/bytes.ts"

/** Request fields of speech that are charged by. */
export const speechFields = ["input"] as const
/** Request fields of images that prices may depend on. */
export const imageFields = ["size", "quality"] as const

/** The text to speak, in Unicode code points. */
export function measureSpeech(ask: Ask): Partial<Measured> {
  const input = fieldOf(ask, "input")
  return typeof input === "string" ? { characters: codePoints(input) } : {}
}

/** What pictures were asked for, where the answer does not say what they are. */
export function measurePictures(ask: Ask): Partial<Measured> {
  return traits(fieldOf(ask, "size"), fieldOf(ask, "quality"))
}

/** A request field that the protocol reads, out of a JSON body or a form. */
function fieldOf({ shape, body, parts }: Ask, name: string): unknown {
  if (shape === null) {
    const [part] = parts(name)
    return part === undefined || part.isFile ? undefined : textOf(part.bytes())
  }
  const field = shape.fields.get(name)
  return field?.kind === "string" ? JSON.parse(textOf(body.part(field.value))) : undefined
}

/** A surrogate pair is one character, a surrogate that stands alone as well. */
function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
