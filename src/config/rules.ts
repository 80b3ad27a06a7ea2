import { isObject } from "../core/json.ts"
import type { VendorPreset } from "../core/vendor.ts"
import { findVendor, vendors } from "../vendors/presets.ts"
import { amountProblems } from "./amounts.ts"
import { headerNameProblem, moneyProblem, rateProblem } from "./fields.ts"
import { echo, problemAt } from "./issues.ts"
import { formatPath, type Path } from "./path.ts"
import { priceProblems } from "./price-rules.ts"
import type { ConfigProblem } from "./problems.ts"
import type { ConfigTree } from "./tree.ts"

/*
 * Rules that a schema cannot say: between fields, between entries, and about the digits of amounts. They read the raw tree and
 * pass over whatever has the wrong shape, so that one run reports these problems together with those of the schema.
 */

interface Entry {
  readonly path: Path
  readonly fields: Record<string, unknown>
}

function entries(container: unknown, path: Path): Entry[] {
  if (!Array.isArray(container)) return []
  return container.flatMap((fields: unknown, index) => (isObject(fields) ? [{ path: [...path, index], fields }] : []))
}

export function ruleProblems(tree: ConfigTree): ConfigProblem[] {
  const root = isObject(tree.value) ? tree.value : {}
  const section = (name: string) => entries(root[name], [name])
  const accounts = section("accounts")
  const accountKeys = accounts.map(({ path, fields }) => entries(fields.keys, [...path, "keys"]))
  return [
    ...section("upstreams").flatMap((upstream) => upstreamProblems(tree, upstream)),
    ...section("models").flatMap(({ path, fields }) => priceProblems(tree, fields.price, [...path, "price"])),
    ...section("models").flatMap(({ path, fields }) => repeatedItems(tree, fields.endpoints, [...path, "endpoints"])),
    ...section("plans").flatMap(({ path, fields }) =>
      amountProblems(tree, fields.price_multiplier, [...path, "price_multiplier"], rateProblem),
    ),
    ...accounts.flatMap(({ path, fields }) => amountProblems(tree, fields.balance, [...path, "balance"], moneyProblem)),
    ...["upstreams", "models", "plans", "accounts"].flatMap((name) => repeated(tree, section(name), "name")),
    ...repeated(tree, section("people"), "email", (email) => email.toLowerCase()),
    ...accountKeys.flatMap((keys) => repeated(tree, keys, "name")),
    ...repeated(tree, accountKeys.flat(), "key"),
  ]
}

function upstreamProblems(tree: ConfigTree, { path, fields }: Entry): ConfigProblem[] {
  const preset = typeof fields.vendor === "string" ? findVendor(fields.vendor) : undefined
  return [
    ...headerProblems(tree, fields.headers, [...path, "headers"]),
    ...repeatedItems(tree, fields.api_keys, [...path, "api_keys"]),
    ...(preset === undefined ? [] : vendorProblems(tree, { path, fields }, preset)),
  ]
}

function vendorProblems(tree: ConfigTree, { path, fields }: Entry, preset: VendorPreset): ConfigProblem[] {
  const problems: ConfigProblem[] = []
  const complain = (field: string, message: string) => problems.push(problemAt(tree, [...path, field], message))
  const has = (field: string) => fields[field] !== undefined || tree.isUnresolved([...path, field])
  const noKeys =
    !has("api_key") && (!has("api_keys") || (Array.isArray(fields.api_keys) && fields.api_keys.length === 0))

  if (has("api_key") && has("api_keys")) complain("api_keys", "cannot stand beside api_key: give one of the two")
  if (noKeys && preset.auth !== "none" && preset.keyOptional !== true) {
    complain("api_key", `is required for vendor "${preset.name}" (or api_keys for several)`)
  }
  if (!has("base_url") && preset.baseUrl === null) {
    complain("base_url", `is required for vendor "${preset.name}": every customer has an address of their own`)
  }
  for (const key of Object.keys(fields)) {
    const owners = vendors.filter((vendor) => Object.hasOwn(vendor.settings ?? {}, key)).map((vendor) => vendor.name)
    if (owners.length > 0 && !owners.includes(preset.name)) {
      complain(key, `is not a setting of vendor "${preset.name}" (only of ${owners.join(", ")})`)
    }
  }
  return problems
}

function headerProblems(tree: ConfigTree, headers: unknown, path: Path): ConfigProblem[] {
  if (!isObject(headers)) return []
  const seen = new Set<string>()
  return Object.keys(headers).flatMap((name) => {
    const problem = seen.has(name.toLowerCase())
      ? "is there twice: upper and lower case are the same header"
      : headerNameProblem(name)
    seen.add(name.toLowerCase())
    return problem === null ? [] : [problemAt(tree, [...path, name], problem)]
  })
}

function repeated(
  tree: ConfigTree,
  list: readonly Entry[],
  field: string,
  same = (value: string) => value,
): ConfigProblem[] {
  const firstAt = new Map<string, Path>()
  return list.flatMap(({ path, fields }) => {
    const value = fields[field]
    if (typeof value !== "string") return []
    const first = firstAt.get(same(value))
    if (first !== undefined)
      return [
        problemAt(tree, [...path, field], `is the same as that of ${formatPath(first)}${echo(tree, [...path, field])}`),
      ]
    firstAt.set(same(value), path)
    return []
  })
}

function repeatedItems(tree: ConfigTree, list: unknown, path: Path): ConfigProblem[] {
  if (!Array.isArray(list)) return []
  return list.flatMap((item: unknown, index) => {
    const first = list.indexOf(item)
    const again = typeof item === "string" && first < index
    return again
      ? [
          problemAt(
            tree,
            [...path, index],
            `is the same as ${formatPath([...path, first])}${echo(tree, [...path, index])}`,
          ),
        ]
      : []
  })
}
