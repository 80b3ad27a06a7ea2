import { echo, problemAt } from "./issues.ts"
import type { Path } from "./path.ts"
import type { ConfigProblem } from "./problems.ts"
import type { ConfigTree } from "./tree.ts"

/** What is wrong with the digits of an amount; values that are no amount at all are left to the schema. */
export function amountProblems(
  tree: ConfigTree,
  value: unknown,
  path: Path,
  check: (text: string) => string | null,
): ConfigProblem[] {
  if ((typeof value !== "number" && typeof value !== "string") || tree.isUnresolved(path)) return []
  const problem = check(amountText(tree, value, path))
  return problem === null ? [] : [problemAt(tree, path, problem + echo(tree, path))]
}

/** An amount as it was written: a float would already have lost digits. */
export function amountText(tree: ConfigTree, value: number | string, path: Path): string {
  return typeof value === "string" ? value.trim() : (tree.sourceOf(path) ?? String(value))
}
