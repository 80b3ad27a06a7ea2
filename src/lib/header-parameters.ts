/** A header value of the form `kind; name=value; name="value"` (RFC 9110, 5.6.6). */
export interface Parameterised {
  /** What stands before the first semicolon, in lower case. */
  readonly kind: string
  /** Names in lower case. */
  readonly parameters: ReadonlyMap<string, ParameterValue>
}

export interface ParameterValue {
  /** Between the quotes as it is written, escapes untouched, where the value is quoted. */
  readonly written: string
  readonly quoted: boolean
}

export interface ParameterProblem {
  readonly problem: string
  /** Index in the text. */
  readonly at: number
}

const token = "[-!#$%&'*+.^_`|~0-9A-Za-z]+"
const kindPattern = new RegExp(`[\\t ]*(${token}(?:/${token})?)[\\t ]*`, "y")
const separatorPattern = /;[\t ]*/y
const parameterPattern = new RegExp(`(${token})=(?:(${token})|"([^"\\\\]*(?:\\\\.[^"\\\\]*)*)")[\\t ]*`, "sy")

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

/** Reads such a value strictly: one parameter given twice, or anything left over, is a problem. */
export function readParameters(text: string): Parameterised | ParameterProblem {
  const kind = matchAt(kindPattern, text, 0)
  if (kind === null) return { problem: "the value starts with no word", at: 0 }
  const parameters = new Map<string, ParameterValue>()
  let at = kind[0].length
  while (at < text.length) {
    const separator = matchAt(separatorPattern, text, at)
    if (separator === null) return { problem: 'expected ";"', at }
    at += separator[0].length
    // The grammar allows an empty parameter, and some clients end the line with a semicolon.
    if (at === text.length || text[at] === ";") continue
    const parameter = matchAt(parameterPattern, text, at)
    if (parameter === null) return { problem: 'expected name=word or name="text"', at }
    const name = parameter[1]!.toLowerCase()
    if (parameters.has(name)) return { problem: `the parameter ${name} is given twice`, at }
    const word = parameter[2]
    parameters.set(name, { written: word ?? parameter[3]!, quoted: word === undefined })
    at += parameter[0].length
  }
  return { kind: kind[1]!.toLowerCase(), parameters }
}
