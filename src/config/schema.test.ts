import { expect, test } from "bun:test"
import { isObject } from "../core/json.ts"
import { vendorNames } from "../vendors/presets.ts"
import { configJsonSchema } from "./schema.ts"

const schema = configJsonSchema()
const example: unknown = Bun.YAML.parse(await Bun.file(new URL("example.yaml", import.meta.url)).text())

function part(value: unknown, ...steps: string[]): Record<string, unknown> {
  let at = value
  for (const step of steps) at = isObject(at) ? at[step] : undefined
  if (!isObject(at)) throw new Error(`no ${steps.join(".")}`)
  return at
}

const properties = (node: unknown) => part(node, "properties")
const items = (section: string) => part(properties(schema), section, "items")

/** Enough of JSON Schema to tell whether the published one would accept a file. */
function complaints(node: Record<string, unknown>, value: unknown, at: string): string[] {
  if (Array.isArray(node.anyOf)) {
    const branches = node.anyOf.filter(isObject).map((branch) => complaints(branch, value, at))
    return branches.some((branch) => branch.length === 0) ? [] : branches.flat()
  }
  if (Array.isArray(node.enum)) return node.enum.includes(value) ? [] : [`${at}: not in enum`]
  if ("const" in node) return node.const === value ? [] : [`${at}: not the constant`]
  if (node.type === "array") {
    return Array.isArray(value)
      ? value.flatMap((item, index) => complaints(part(node, "items"), item, `${at}[${index}]`))
      : [`${at}: no list`]
  }
  if (node.type === "object") return objectComplaints(node, value, at)
  const isRight = [node.type]
    .flat()
    .some((type) => (type === "integer" ? Number.isInteger(value) : typeof value === type))
  return isRight ? [] : [`${at}: not ${String(node.type)}`]
}

function objectComplaints(node: Record<string, unknown>, value: unknown, at: string): string[] {
  if (!isObject(value)) return [`${at}: no map`]
  const known = isObject(node.properties) ? node.properties : {}
  const required = Array.isArray(node.required) ? node.required : []
  return [
    ...required.filter((key) => !(String(key) in value)).map((key) => `${at}.${String(key)}: missing`),
    ...Object.entries(value).flatMap(([key, inner]) => {
      const child = known[key]
      if (isObject(child)) return complaints(child, inner, `${at}.${key}`)
      return node.additionalProperties === false ? [`${at}.${key}: unknown`] : []
    }),
  ]
}

test("the published JSON Schema accepts the documented example, environment references and all", () => {
  expect(complaints(schema, example, "")).toEqual([])
})

test("the published JSON Schema refuses what the program refuses", () => {
  expect(complaints(schema, { models: [{ name: "m", prize: 1 }] }, "")).toEqual([
    ".models[0].price: missing",
    ".models[0].routes: missing",
    ".models[0].prize: unknown",
  ])
  expect(complaints(schema, { upstreams: [{ name: "u", vendor: "nobody" }] }, "")).toEqual([
    ".upstreams[0].vendor: not in enum",
  ])
})

test("editors can complete every section, every vendor and the vendors' own settings", () => {
  expect(Object.keys(properties(schema))).toEqual([
    "upstreams",
    "models",
    "plans",
    "accounts",
    "people",
    "timeouts",
    "cors",
    "allow_private_addresses",
    "retention",
  ])
  expect(part(properties(items("upstreams")), "vendor").enum).toEqual([...vendorNames])
  expect(properties(items("upstreams"))).toHaveProperty("no_stream_options")
})

test("every field has a description", () => {
  const missing: string[] = []
  const look = (node: unknown, at: string): void => {
    if (!isObject(node)) return
    for (const [name, field] of Object.entries(isObject(node.properties) ? node.properties : {})) {
      if (!isObject(field) || typeof field.description !== "string" || field.description === "")
        missing.push(`${at}.${name}`)
      look(field, `${at}.${name}`)
    }
    look(node.items, `${at}[]`)
    for (const branch of Array.isArray(node.anyOf) ? node.anyOf : []) look(branch, at)
  }
  look(schema, "")
  expect(missing).toEqual([])
})
