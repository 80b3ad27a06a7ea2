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

/** A calendar date, or a time with its distance from UTC. */
const timeForms = [z.regexes.date, z.regexes.datetime({ offset: true })]

/** No name contains control characters, and Postgres takes some of them for an error. */
export function isPlain(text: string): boolean {
  return !controlCharacter.test(text)
}

export function plainText(error = once) {
  return z.string(error).refine(isPlain, "must not contain control characters")
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

export function wholeParameter(meaning: string, least: number, most: number, usual?: number) {
  const fits = (text: string): boolean => /^\d{1,15}$/.test(text) && Number(text) >= least && Number(text) <= most
  return z
    .string(once)
    .refine(fits, `must be a whole number from ${least} to ${most}`)
    .optional()
    .openapi({
      type: "integer",
      minimum: least,
      maximum: most,
      ...(usual !== undefined && { default: usual }),
      description: meaning,
    })
}

export function choiceParameter<const Choice extends string>(meaning: string, choices: readonly Choice[]) {
  return z
    .enum(choices, { error: `must be one of ${choices.join(", ")}` })
    .optional()
    .describe(meaning)
}

/** Some of the choices, separated by commas. */
export function listParameter(meaning: string, choices: readonly string[]) {
  const fits = (text: string): boolean => {
    const given = text.split(",")
    return given.every((each) => choices.includes(each)) && new Set(given).size === given.length
  }
  return z
    .string(once)
    .refine(fits, `must be some of ${choices.join(", ")}, each once, separated by commas`)
    .optional()
    .describe(`${meaning} Some of ${choices.join(", ")}, separated by commas.`)
}

/** A moment, such as `2026-11-15T09:30:00Z`. */
export function timeParameter(meaning: string) {
  return z
    .string(once)
    .refine(
      (text) => timeForms.some((form) => form.test(text)),
      "must be a time such as 2026-11-15T09:30:00Z or a date such as 2026-11-15; a + in it is written %2B",
    )
    .optional()
    .openapi({
      type: "string",
      description: `${meaning} ISO 8601; a date alone is its first moment in UTC.`,
      example: "2026-11-15T09:30:00Z",
    })
}

/** Unix milliseconds of a time that `timeParameter` let pass. */
export function timeOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text)
}

/** A piece of the path. */
export function nameInPath(meaning: string) {
  return plainText().describe(meaning)
}

/** The query of a route: these parameters and no others, because a mistyped filter must not quietly list everything. */
export function queryOf<Shape extends z.ZodRawShape>(shape: Shape) {
  return onlyOf(shape, "a parameter of this address")
}

/** These fields and no others; `what` says what the others are not. */
export function onlyOf<Shape extends z.ZodRawShape>(shape: Shape, what: string) {
  const known = Object.keys(shape)
  return z.strictObject(shape, {
    error: (issue) => (issue.code === "unrecognized_keys" ? unknownFields(issue.keys, known, what) : undefined),
  })
}

function unknownFields(names: readonly string[], known: readonly string[], what: string): string {
  const told = names.map((name) => {
    const close = suggest(name, known)
    return `${shown(name)} is not ${what}${close === null ? "" : ` (did you mean ${close}?)`}`
  })
  return told.join("; ")
}

/** Refuses a request whose parameters do not fit, naming each of them. */
export function refuseInvalid(result: { readonly success: boolean; readonly error?: z.ZodError }): void {
  if (result.success) return
  const problems = (result.error?.issues ?? []).map(({ path, message }) => [...path.map(String), message].join(" "))
  throw new GatewayError("invalid_parameter", problems.join("; "))
}
