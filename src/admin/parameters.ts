import { z } from "@hono/zod-openapi"
import { GatewayError } from "../core/errors.ts"
import { suggest } from "../lib/suggest.ts"
import { shown } from "./errors.ts"

/*
 * Parameters are text on the wire and stay text here: each schema checks the text and describes what it stands for,
 * and whoever uses the value reads it. So the description of the API says exactly what is accepted.
 */

const once = { error: "must be given once" }
const controlCharacter = /\p{Cc}/u

/** No name contains control characters, and Postgres takes some of them for an error. */
export function isPlain(text: string): boolean {
  return !controlCharacter.test(text)
}

function plainText() {
  return z.string(once).refine(isPlain, "must not contain control characters")
}

export function textParameter(meaning: string) {
  return plainText().optional().describe(meaning)
}

export function flagParameter(meaning: string) {
  return z
    .string(once)
    .refine((text) => text === "true" || text === "false", "must be true or false")
    .optional()
    .openapi({ type: "boolean", description: meaning })
}

export function wholeParameter(meaning: string, least: number, most: number, usual: number) {
  const fits = (text: string): boolean => /^\d{1,15}$/.test(text) && Number(text) >= least && Number(text) <= most
  return z
    .string(once)
    .refine(fits, `must be a whole number from ${least} to ${most}`)
    .optional()
    .openapi({ type: "integer", minimum: least, maximum: most, default: usual, description: meaning })
}

export function choiceParameter<const Choice extends string>(meaning: string, choices: readonly Choice[]) {
  return z
    .enum(choices, { error: `must be one of ${choices.join(", ")}` })
    .optional()
    .describe(meaning)
}

/** A piece of the path. */
export function nameInPath(meaning: string) {
  return plainText().describe(meaning)
}

/** The query of a route: these parameters and no others, because a mistyped filter must not quietly list everything. */
export function queryOf<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape)
  return z.strictObject(shape, {
    error: (issue) => (issue.code === "unrecognized_keys" ? unknownParameters(issue.keys, known) : undefined),
  })
}

function unknownParameters(names: readonly string[], known: readonly string[]): string {
  const told = names.map((name) => {
    const close = suggest(name, known)
    return `${shown(name)} is not a parameter of this address${close === null ? "" : ` (did you mean ${close}?)`}`
  })
  return told.join("; ")
}

/** Refuses a request whose parameters do not fit, naming each of them. */
export function refuseInvalid(result: { readonly success: boolean; readonly error?: z.ZodError }): void {
  if (result.success) return
  const problems = (result.error?.issues ?? []).map(({ path, message }) => [...path.map(String), message].join(" "))
  throw new GatewayError("invalid_parameter", problems.join("; "))
}
