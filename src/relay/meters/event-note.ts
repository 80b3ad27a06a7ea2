import { utf8 } from "../../lib/bytes.ts"
import { isDoubtful, JsonTally, type Tally, talliedValue } from "../../lib/json-tally.ts"

/** What an event of a media stream says at its top level, however large the picture or sound in it is. */
export interface EventNote {
  readonly type: string | null
  readonly isError: boolean
  /** It carries a picture, or the address of one. */
  readonly hasPicture: boolean
  /** Entries of its `data`; null where that is no list. */
  readonly entries: number | null
  readonly usage: unknown
  readonly size: unknown
  readonly quality: unknown
  /** What it says may not be what others read. */
  readonly doubtful: boolean
}

/** Text is read in slices, so that a large event is not copied as a whole. */
const sliceLength = 64 * 1024

/** Null for what is no JSON object. */
export function noteEvent(data: string): EventNote | null {
  const tally = tallyText(data, ["type", "usage", "size", "quality"], ["error", "b64_json", "url", "data"])
  if (tally.root !== "object") return null
  const { fields } = tally
  const type = talliedValue(tally, "type")
  const error = fields.get("error")
  const list = fields.get("data")
  return {
    type: typeof type === "string" ? type : null,
    isError: error !== undefined && error.kind !== "null",
    hasPicture: fields.get("b64_json")?.kind === "string" || fields.get("url")?.kind === "string",
    entries: list?.kind === "array" ? list.entries : null,
    usage: talliedValue(tally, "usage"),
    size: talliedValue(tally, "size"),
    quality: talliedValue(tally, "quality"),
    doubtful: isDoubtful(tally),
  }
}

export function isWholeObject(text: string): boolean {
  return tallyText(text, [], []).root === "object"
}

function tallyText(text: string, keep: readonly string[], note: readonly string[]): Tally {
  const tally = new JsonTally({ keep, note })
  let at = 0
  while (at < text.length) {
    const end = at + sliceLength
    // A character of two units stays whole.
    const cut = isHighSurrogate(text.charCodeAt(end - 1)) ? end + 1 : end
    tally.push(utf8(text.slice(at, cut)))
    at = cut
  }
  return tally.end()
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}
