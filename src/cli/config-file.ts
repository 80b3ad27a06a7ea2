import { readFileSync } from "node:fs"
import { type Applied, applyConfig } from "../catalog/apply.ts"
import { CatalogError, type CatalogProblem, describe } from "../catalog/problem.ts"
import type { ConfigDocument } from "../config/document.ts"
import { type ConfigProblem, formatProblems } from "../config/problems.ts"
import { type ReadConfig, readConfig } from "../config/read.ts"
import type { Environment } from "../settings.ts"
import type { House } from "./house.ts"
import { UsageError } from "./usage-error.ts"

/** A config file, read and checked as far as the file alone allows. */
export interface ConfigSource extends ReadConfig {
  readonly file: string
}

export function readConfigFile(file: string, env: Environment): ConfigSource {
  let text: string
  try {
    text = readFileSync(file, "utf8")
  } catch (error) {
    throw new UsageError(
      `cannot read the config file ${file}: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  return { file, ...readConfig(text, file, env) }
}

export async function applyFile(source: ConfigSource, house: House, prune: boolean): Promise<Applied> {
  try {
    return await applyConfig(house.store, house.vault, source.document, { prune })
  } catch (error) {
    if (error instanceof CatalogError) throw refusal(source, error.problems)
    throw error
  }
}

/** Problems of the catalog as problems of the file that would have caused them. */
export function refusal(source: ConfigSource, problems: readonly CatalogProblem[]): UsageError {
  return new UsageError(
    formatProblems(
      source.file,
      problems.map((problem) => locate(source, problem)),
    ),
  )
}

function locate(source: ConfigSource, problem: CatalogProblem): ConfigProblem {
  const index = indexOf(source.document, problem)
  if (index < 0) return { path: "", line: null, message: `${describe(problem)} (already in the database)` }
  const path = `${problem.section}[${index}]${problem.field === "" ? "" : `.${problem.field}`}`
  return { path, line: source.lineOf(path), message: problem.message }
}

function indexOf(document: ConfigDocument, { section, name }: CatalogProblem): number {
  if (section === "people") return (document.people ?? []).findIndex(({ email }) => email === name)
  return (document[section] ?? []).findIndex((entry) => entry.name === name)
}
