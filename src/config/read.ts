import type { ConfigDocument } from "./document.ts"
import type { Environment } from "./environment.ts"
import { problemsOf } from "./issues.ts"
import { normalise } from "./normalise.ts"
import { ConfigError } from "./problems.ts"
import { ruleProblems } from "./rules.ts"
import { fileSchema } from "./schema.ts"
import { readTree } from "./tree.ts"

export interface ReadConfig {
  readonly document: ConfigDocument
  /** The line of a path such as `models[2].routes[0].upstream`, for problems that only the database can show. */
  lineOf(path: string): number | null
}

/** Reads a config file (YAML or JSON), or throws a ConfigError that tells everything wrong with it. */
export function readConfig(text: string, file: string, env: Environment): ReadConfig {
  const tree = readTree(text, env)
  const isSyntax = tree.problems.some((problem) => problem.path === "")
  if (isSyntax) throw new ConfigError(file, tree.problems)

  const parsed = fileSchema.safeParse(tree.value)
  const problems = [
    ...tree.problems,
    ...(parsed.success ? [] : problemsOf(fileSchema, parsed.error.issues, tree)),
    ...ruleProblems(tree),
  ]
  if (!parsed.success || problems.length > 0) throw new ConfigError(file, problems)
  return { document: normalise(parsed.data, tree), lineOf: tree.lineOf }
}
