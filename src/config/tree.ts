import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type ParsedNode,
  parseDocument,
  type Scalar,
  type YAMLError,
  type YAMLMap,
} from "yaml"
import { vendors } from "../vendors/presets.ts"
import { type Environment, isWholeReference, substitute } from "./environment.ts"
import { formatPath, type Path, parentPath } from "./path.ts"
import type { ConfigProblem } from "./problems.ts"

/** Far beyond any real file; they stop aliases that contain themselves and aliases of aliases of aliases. */
const mostLevels = 16
const mostAliases = 1_000
const mostNodes = 200_000

/** Fields that are not text, and so may take `${NAME}` for a number or a switch. */
const typedFields = new Set([
  "concurrency",
  "priority",
  "weight",
  "above_input",
  "allow_private_addresses",
  ...vendors.flatMap(({ settings = {} }) =>
    Object.entries(settings)
      .filter(([, { type }]) => type === "boolean")
      .map(([key]) => key),
  ),
])

/** A file as plain values, with what the values alone no longer tell. */
export interface ConfigTree {
  readonly value: unknown
  readonly problems: readonly ConfigProblem[]
  /** The line of a value, or of the nearest thing around it that the file has. */
  lineOf(path: string): number | null
  /** The text of a number as it was written, digits that a float would lose included. */
  sourceOf(path: Path): string | undefined
  fromEnvironment(path: Path): boolean
  /** Already reported: nothing else about this value is worth saying. */
  isUnresolved(path: Path): boolean
}

const flowAdvice = `inside { } and [ ] write "\${NAME}" in quotes`

const syntaxMessages: Readonly<Record<string, string>> = {
  BAD_DQ_ESCAPE: "has an unknown escape sequence in a double-quoted text",
  BAD_INDENT: "is not indented like the lines around it, or a bracket is not closed",
  BAD_SCALAR_START: "has a value that begins with a reserved character; put it in quotes",
  BLOCK_AS_IMPLICIT_KEY: 'has a second ": " in one line; put the value in quotes',
  MISSING_CHAR: `lacks a character such as ":", ",", a quote or a bracket (${flowAdvice})`,
  MULTILINE_IMPLICIT_KEY: "has a key that spans several lines",
  MULTIPLE_DOCS: 'holds more than one document (remove the "---")',
  TAB_AS_INDENT: "is indented by tabs; use spaces",
  UNEXPECTED_TOKEN: `has something that does not belong here (${flowAdvice})`,
}

/** Own words: the parser's messages quote the file, which may hold secrets. */
function syntaxMessage(error: YAMLError, text: string): string {
  if (error.code === "DUPLICATE_KEY") {
    const key = /^["']?([\w-]{1,64})/.exec(text.slice(error.pos[0]))?.[1]
    return key === undefined ? "a key is there twice" : `the key "${key}" is there twice`
  }
  return `not valid YAML or JSON: ${syntaxMessages[error.code] ?? `the line cannot be read (${error.code})`}`
}

/** What is noted about the values while they are read, by formatted path. */
interface Notes {
  readonly problems: ConfigProblem[]
  readonly lines: Map<string, number>
  readonly sources: Map<string, string>
  readonly secrets: Set<string>
  readonly unresolved: Set<string>
}

/** Reads YAML or JSON text and fills in the environment; never throws. */
export function readTree(text: string, env: Environment): ConfigTree {
  const lineCounter = new LineCounter()
  const document = parseDocument(text, { lineCounter, prettyErrors: false })
  const lastOffset = Math.max(text.trimEnd().length - 1, 0)
  const lineAt = (offset: number) => lineCounter.linePos(Math.min(offset, lastOffset)).line
  const notes: Notes = { problems: [], lines: new Map(), sources: new Map(), secrets: new Set(), unresolved: new Set() }

  for (const error of document.errors) {
    notes.problems.push({ path: "", line: lineAt(error.pos[0]), message: syntaxMessage(error, text) })
  }
  const readable = document.errors.length === 0 && document.contents !== null
  const value = readable ? valueReader(document, env, lineAt, notes)(document.contents, []) : {}
  return {
    value: value ?? {},
    problems: notes.problems,
    lineOf: (path) => nearestLine(notes.lines, path),
    sourceOf: (path) => notes.sources.get(formatPath(path)),
    fromEnvironment: (path) => notes.secrets.has(formatPath(path)),
    isUnresolved: (path) => notes.unresolved.has(formatPath(path)),
  }
}

function nearestLine(lines: ReadonlyMap<string, number>, path: string): number | null {
  for (let at: string | null = path; at !== null; at = parentPath(at)) {
    const line = lines.get(at)
    if (line !== undefined) return line
  }
  return null
}

function valueReader(document: Document.Parsed, env: Environment, lineAt: (offset: number) => number, notes: Notes) {
  let nodes = 0
  let aliases = 0

  function visit(node: ParsedNode | null, path: Path): unknown {
    if (node === null) return null
    const place = formatPath(path)
    // A key's line was noted by its map: it is where a person looks for the field.
    if (!notes.lines.has(place)) notes.lines.set(place, lineAt(node.range[0]))
    if (path.length > mostLevels) return refuse(place, `is nested more than ${mostLevels} levels deep`)
    if (++nodes > mostNodes) return refuse("", `has more than ${mostNodes} values, aliases written out`)
    if (isAlias(node)) {
      if (++aliases > mostAliases) return refuse("", `uses more than ${mostAliases} aliases (*)`)
      const target = node.resolve(document)
      return target === undefined
        ? refuse(place, "is an alias (*) of an anchor (&) that does not exist")
        : visit(target as ParsedNode, path)
    }
    if (isSeq(node)) return node.items.map((item, index) => visit(item, [...path, index]))
    if (isMap(node)) return visitMap(node, path)
    return visitScalar(node, path, place)
  }

  function visitMap(node: YAMLMap.Parsed, path: Path): Record<string, unknown> {
    const entries: [string, unknown][] = []
    for (const { key, value } of node.items) {
      if (!isScalar(key)) {
        refuse(formatPath(path), "has a key that is not text")
        continue
      }
      const inner = [...path, String(key.value)]
      notes.lines.set(formatPath(inner), lineAt(key.range[0]))
      const read = visit(value, inner)
      // A field without a value is one that a person has left out or commented out.
      if (read !== null) entries.push([String(key.value), read])
    }
    return Object.fromEntries(entries)
  }

  function visitScalar(node: Scalar.Parsed, path: Path, place: string): unknown {
    if (typeof node.value === "number" && node.source !== undefined) notes.sources.set(place, node.source)
    if (typeof node.value !== "string") return node.value
    const found = substitute(node.value, env)
    if ("problem" in found) return refuse(place, found.problem)
    if (found.used) notes.secrets.add(place)
    const wantsType = typedFields.has(String(path.at(-1))) && isWholeReference(node.value)
    return wantsType ? typed(found.text) : found.text
  }

  function refuse(place: string, message: string): null {
    const told = notes.problems.some((problem) => problem.path === place && problem.message === message)
    if (!told) notes.problems.push({ path: place, line: nearestLine(notes.lines, place), message })
    notes.unresolved.add(place)
    return null
  }

  return visit
}

function typed(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true"
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text
}
