/** A part of the catalog that names can point into. */
export type Section = "upstreams" | "models" | "plans" | "accounts" | "people"

/** Why a catalog cannot be served: which entry, where in it, and what is wrong. */
export interface CatalogProblem {
  readonly section: Section
  /** The entry's name. */
  readonly name: string
  /** The field inside the entry, such as `routes[0].upstream`. */
  readonly field: string
  readonly message: string
}

export class CatalogError extends Error {
  readonly problems: readonly CatalogProblem[]

  constructor(problems: readonly CatalogProblem[]) {
    super(problems.map(describe).join("\n"))
    this.name = "CatalogError"
    this.problems = problems
  }
}

export function describe({ section, name, field, message }: CatalogProblem): string {
  return `${section} ${JSON.stringify(name)}${field === "" ? "" : ` ${field}`}: ${message}`
}
