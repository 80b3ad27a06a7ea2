import { readParameters } from "./header-parameters.ts"
import { nameByte } from "./json-grammar.ts"

/** What a part's content-disposition says of it. */
export interface Disposition {
  /** Decoded; null where it has none. */
  readonly name: string | null
  readonly hasFilename: boolean
}

export interface HeaderProblem {
  readonly problem: string
  /** Offset in the line. */
  readonly at: number
}

const tab = 0x09
const space = 0x20
const lastControl = 0x1f
const del = 0x7f

const headerPattern = /^([-!#$%&'*+.^_`|~0-9A-Za-z]+):[\t ]*/
/** Also finds what stands inside quotes: a reader with other rules for backslashes takes it for the name. */
const anyNamePattern = /;[\t ]*name[*0-9]*[\t ]*=/gi
const wellEscapedPattern = /^(?:[^\\]|\\["\\])*$/s
const escapes: Readonly<Record<string, string>> = { '\\"': '"', "\\\\": "\\", "%22": '"', "%0D": "\r", "%0A": "\n" }

/** Reads one header line of a part, without its CRLF; null for any header but content-disposition. */
export function readHeaderLine(line: Uint8Array): Disposition | HeaderProblem | null {
  if (line[0] === space || line[0] === tab) return { problem: "a part's header is folded over two lines", at: 0 }
  const control = line.findIndex((byte) => (byte <= lastControl && byte !== tab) || byte === del)
  if (control >= 0) return { problem: `unexpected ${nameByte(line[control]!)} in a part's header`, at: control }
  // One character for each byte, so that indexes are offsets.
  const text = Buffer.prototype.toString.call(line, "latin1")
  const header = headerPattern.exec(text)
  if (header === null) return { problem: 'a part\'s header line is not "name: value"', at: 0 }
  if (header[1]!.toLowerCase() !== "content-disposition") return null
  return readDisposition(text.slice(header[0].length), header[0].length)
}

function readDisposition(value: string, offset: number): Disposition | HeaderProblem {
  const wrong = (problem: string, at = 0): HeaderProblem => ({
    problem: `content-disposition: ${problem}`,
    at: offset + at,
  })
  const read = readParameters(value)
  if ("problem" in read) return wrong(read.problem, read.at)
  if (read.kind !== "form-data") return wrong(`"${read.kind}" is not form-data`)
  const names = [...read.parameters.keys()]
  // Readers that know RFC 2231 would take this for the name, the others would not.
  const extended = names.find((name) => name.startsWith("name*"))
  if (extended !== undefined) return wrong(`${extended}= is not allowed in form-data`)
  const name = read.parameters.get("name")
  const namesSeen = value.match(anyNamePattern)?.length ?? 0
  if (namesSeen > (name === undefined ? 0 : 1)) return wrong('a quoted text holds "; name="')
  if (name?.quoted && !wellEscapedPattern.test(name.written)) {
    return wrong("in the name a backslash may only stand before a quote or a backslash")
  }
  return {
    name: name === undefined ? null : decodeName(name.written, name.quoted),
    hasFilename: names.some((key) => key === "filename" || key.startsWith("filename*")),
  }
}

/** Undoes what RFC 9110 and what browsers do to quotes and line ends; no other percent sign is an escape. */
function decodeName(written: string, quoted: boolean): string {
  if (!quoted) return written
  const plain = written.replace(/\\["\\]|%22|%0D|%0A/gi, (spelling) => escapes[spelling.toUpperCase()]!)
  return Buffer.from(plain, "latin1").toString("utf8")
}
