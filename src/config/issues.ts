import { z } from "zod"
import { isObject } from "../core/json.ts"
import { suggest } from "../lib/suggest.ts"
import { formatPath, type Path } from "./path.ts"
import type { ConfigProblem } from "./problems.ts"
import type { ConfigTree } from "./tree.ts"

type Issue = z.core.$ZodIssue

/** Fields whose value is a secret, or would be one if it stood in the right place. */
const secretFields = new Set(["api_key", "api_keys", "key", "keys", "password", "headers"])
const longestEcho = 60

function valueAt(tree: ConfigTree, path: Path): unknown {
  let value = tree.value
  for (const step of path) {
    if (Array.isArray(value)) value = value[Number(step)]
    else if (isObject(value)) value = Object.hasOwn(value, String(step)) ? value[String(step)] : undefined
    else return undefined
  }
  return value
}

/** ` (got "high")`, or nothing where the value is, or may be, a secret. */
export function echo(tree: ConfigTree, path: Path): string {
  const value = valueAt(tree, path)
  if (Array.isArray(value)) return " (got a list)"
  if (isObject(value)) return " (got a map)"
  // A file that is one bare text may well be a pasted secret.
  if (path.length === 0 || tree.fromEnvironment(path) || path.some((step) => secretFields.has(String(step)))) return ""
  if (typeof value !== "string") return ` (got ${tree.sourceOf(path) ?? String(value)})`
  const mayHoldPassword = value.includes("@") && value.includes("://")
  if (mayHoldPassword) return ""
  return ` (got ${JSON.stringify(value.length > longestEcho ? `${value.slice(0, longestEcho)}…` : value)})`
}

/** The fields that the file may have at this path, for the did-you-mean. */
function knownFields(schema: unknown, path: Path): string[] {
  if (schema instanceof z.ZodOptional) return knownFields(schema.unwrap(), path)
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => knownFields(option, path))
  const [step, ...rest] = path
  if (schema instanceof z.ZodArray) return knownFields(schema.element, rest)
  if (!(schema instanceof z.ZodObject)) return []
  return step === undefined ? Object.keys(schema.shape) : knownFields(schema.shape[String(step)], rest)
}

/** Of a union's branches, the one that the writer meant: the one that fails inside, not at the door. */
function insideIssues(issue: Issue): readonly Issue[] | null {
  if (issue.code !== "invalid_union") return null
  const meant = issue.errors.find((branch) =>
    branch.every((inner) => inner.path.length > 0 || inner.code === "unrecognized_keys"),
  )
  return meant ?? null
}

function hint(word: unknown, known: Iterable<string>): string {
  const meant = typeof word === "string" ? suggest(word, known) : null
  return meant === null ? "" : `did you mean "${meant}"?`
}

/** Turns what the schema says into problems that name the field, the line, and what to write instead. */
export function problemsOf(
  schema: z.ZodType,
  issues: readonly Issue[],
  tree: ConfigTree,
  base: Path = [],
): ConfigProblem[] {
  return issues.flatMap((issue) => {
    const path: Path = [...base, ...(issue.path as (string | number)[])]
    const inside = insideIssues(issue)
    if (inside !== null) return problemsOf(schema, inside, tree, path)
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => {
        const meant = hint(key, knownFields(schema, path))
        return problemAt(tree, [...path, key], `is not a known field${meant === "" ? "" : ` (${meant})`}`)
      })
    }
    if (tree.isUnresolved(path)) return []
    return [problemAt(tree, path, issueMessage(issue, tree, path))]
  })
}

function issueMessage(issue: Issue, tree: ConfigTree, path: Path): string {
  const value = valueAt(tree, path)
  if (value === undefined || value === null)
    return issue.message.startsWith("must be ") ? `is required, and ${issue.message}` : "is required"
  if (issue.code !== "invalid_value") return issue.message + echo(tree, path)
  const known = issue.values.map(String)
  const shown = echo(tree, path)
  const meant = shown === "" ? "" : hint(value, known)
  return `${issue.message}${meant === "" ? shown : `${shown.slice(0, -1)}; ${meant})`}: ${known.join(", ")}`
}

export function problemAt(tree: ConfigTree, path: Path, message: string): ConfigProblem {
  const text = formatPath(path)
  return { path: text, line: tree.lineOf(text), message }
}
