/** One thing wrong with a config file. */
export interface ConfigProblem {
  /** Such as `models[2].routes[0].upstream`; empty where the file as a whole is meant. */
  readonly path: string
  readonly line: number | null
  readonly message: string
}

/** A config file that cannot be used; tells everything that is wrong with it at once. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[]

  constructor(file: string, problems: readonly ConfigProblem[]) {
    super(formatProblems(file, problems))
    this.name = "ConfigError"
    this.problems = problems
  }
}

/** One line for each problem, in the order of the file: `tollgate.yaml:14: models[2].price: is required`. */
export function formatProblems(file: string, problems: readonly ConfigProblem[]): string {
  const ordered = problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
  return ordered.map((problem) => formatProblem(file, problem)).join("\n")
}

function formatProblem(file: string, { path, line, message }: ConfigProblem): string {
  const place = line === null ? file : `${file}:${line}`
  return path === "" ? `${place}: ${message}` : `${place}: ${path}: ${message}`
}
