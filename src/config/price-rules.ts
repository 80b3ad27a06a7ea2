import { isObject } from "../core/json.ts"
import { type PriceUnit, priceUnits } from "../core/price.ts"
import { amountProblems } from "./amounts.ts"
import { rateProblem } from "./fields.ts"
import { problemAt } from "./issues.ts"
import { formatPath, type Path } from "./path.ts"
import type { ConfigProblem } from "./problems.ts"
import type { ConfigTree } from "./tree.ts"

type Fields = Readonly<Record<string, unknown>>

const conditions = ["above_input", "size", "quality"] as const
const tokenUnits = ["input", "cached_input", "cache_write", "audio_input", "output", "audio_output"] as const
const pictureUnits: readonly PriceUnit[] = ["image", ...tokenUnits]

/** What is wrong with a model's price beyond the shape of its fields. */
export function priceProblems(tree: ConfigTree, price: unknown, path: Path): ConfigProblem[] {
  if (!isObject(price)) return []
  const units = unitsIn(tree, price, path)
  if (units.length === 0 && Object.keys(price).every((field) => field === "tiers")) {
    return [problemAt(tree, path, `must have at least one unit (${priceUnits.join(", ")}), or be "free"`)]
  }
  return [...rateProblems(tree, price, path), ...tiersProblems(tree, price.tiers, [...path, "tiers"], units)]
}

function unitsIn(tree: ConfigTree, prices: Fields, path: Path): readonly PriceUnit[] {
  return priceUnits.filter((unit) => prices[unit] !== undefined || tree.isUnresolved([...path, unit]))
}

function rateProblems(tree: ConfigTree, prices: Fields, path: Path): ConfigProblem[] {
  return priceUnits.flatMap((unit) => amountProblems(tree, prices[unit], [...path, unit], rateProblem))
}

function tiersProblems(tree: ConfigTree, tiers: unknown, path: Path, units: readonly PriceUnit[]): ConfigProblem[] {
  if (!Array.isArray(tiers)) return []
  return tiers.flatMap((tier: unknown, index) => {
    if (!isObject(tier)) return []
    const place = [...path, index]
    const later = tiers.findIndex((other: unknown, at) => at > index && isObject(other) && replaces(other, tier))
    return [
      ...tierProblems(tree, tier, place, units),
      ...(later < 0 ? [] : [problemAt(tree, place, `has no effect: ${formatPath([...path, later])} replaces it`)]),
    ]
  })
}

function tierProblems(tree: ConfigTree, tier: Fields, path: Path, units: readonly PriceUnit[]): ConfigProblem[] {
  const problems = rateProblems(tree, tier, path)
  const complain = (place: Path, message: string) => problems.push(problemAt(tree, place, message))
  const own = unitsIn(tree, tier, path)
  const given = conditions.filter((name) => tier[name] !== undefined || tree.isUnresolved([...path, name]))
  const has = (wanted: readonly PriceUnit[]) => wanted.some((unit) => units.includes(unit) || own.includes(unit))

  if (given.length === 0) complain(path, `must have at least one condition (${conditions.join(", ")})`)
  if (own.length === 0) complain(path, `must have at least one price (${priceUnits.join(", ")})`)
  for (const name of given) {
    const wanted = name === "above_input" ? tokenUnits : pictureUnits
    if (!has(wanted)) complain([...path, name], `is of no use without a price by one of ${wanted.join(", ")}`)
  }
  return problems
}

/** True where a later tier fits whenever the earlier one does, and has a price of its own for all that the earlier one names. */
function replaces(later: Fields, earlier: Fields): boolean {
  const named = priceUnits.filter((unit) => earlier[unit] !== undefined)
  return (
    named.length > 0 &&
    named.every((unit) => later[unit] !== undefined) &&
    conditions.every((name) => later[name] === undefined || implies(earlier[name], later[name]))
  )
}

function implies(earlier: unknown, later: unknown): boolean {
  if (typeof earlier === "number" && typeof later === "number") return earlier >= later
  return typeof earlier === "string" && typeof later === "string" && earlier.toLowerCase() === later.toLowerCase()
}
