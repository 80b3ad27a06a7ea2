import { afterAll, beforeAll, expect, test } from "bun:test"
import { z } from "zod"
import { adminApp } from "../../src/admin/api.ts"
import { isObject } from "../../src/core/json.ts"
import { type FreshStore, freshStore } from "../store/engines.ts"
import { type BackOffice, openBackOffice } from "./back-office.ts"
import { exampleBodies, examples, recordSample, sampleHouse } from "./samples.ts"

type Json = Record<string, unknown>

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly parameters?: readonly { name: string; in: string; required: boolean; schema: Json; description?: string }[]
  readonly requestBody?: { readonly required: boolean; readonly content: Json }
  readonly responses: Readonly<Record<string, { description: string; headers: Json; content: Json }>>
}

interface Description {
  readonly openapi: string
  readonly info: Json
  readonly security: readonly Json[]
  readonly components: { readonly schemas: Readonly<Record<string, Json>>; readonly securitySchemes: Json }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

let fresh: FreshStore
let office: BackOffice
let description: Description
beforeAll(async () => {
  fresh = await freshStore("sqlite")
  office = await openBackOffice(fresh.store, sampleHouse)
  await recordSample(fresh.store)
  description = await office.read<Description>("/api/openapi.json")
})
afterAll(async () => {
  await office.stop()
  await fresh.close()
})

function operations(): readonly (readonly [path: string, method: string, operation: Operation])[] {
  return Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [path, method, operation] as const),
  )
}

function referencesIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "$ref" && typeof inner === "string" ? [inner] : referencesIn(inner),
  )
}

/** A schema with its references filled in, none of them allowing fields that are not described. */
function wholeSchema(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(wholeSchema)
  if (!isObject(value)) return value
  if (typeof value.$ref === "string") return wholeSchema(description.components.schemas[value.$ref.split("/").at(-1)!])
  const inner = Object.fromEntries(Object.entries(value).map(([key, each]) => [key, wholeSchema(each)]))
  return value.properties === undefined ? inner : { ...inner, additionalProperties: false }
}

function schemaOf(operation: Operation, status: number): z.ZodType {
  const content = operation.responses[status]!.content["application/json"] as { schema: Json }
  return z.fromJSONSchema(wholeSchema(content.schema) as Parameters<typeof z.fromJSONSchema>[0])
}

test("the description is OpenAPI 3.1 with the program's version, and everything is behind the bearer", () => {
  expect(description.openapi).toBe("3.1.0")
  expect(description.info).toMatchObject({ title: "Tollgate back office", version: "1.2.3" })
  expect(description.security).toEqual([{ admin_token: [] }])
  expect(description.components.securitySchemes).toMatchObject({ admin_token: { type: "http", scheme: "bearer" } })
  for (const [, , operation] of operations()) expect(operation).not.toHaveProperty("security")
})

test("every reference leads somewhere", () => {
  const references = referencesIn(description)
  expect(references.length).toBeGreaterThan(10)
  for (const reference of references) {
    expect(reference).toStartWith("#/")
    const target = reference
      .slice(2)
      .split("/")
      .reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), description)
    expect([reference, isObject(target)]).toEqual([reference, true])
  }
})

test("what is described is served and what is served is described", () => {
  const served = adminApp(office.parts).routes.map(
    ({ method, path }) => `${method} ${path.replace(/:(\w+)(\{[^}]*\})?/g, "{$1}")}`,
  )
  const described = operations().map(([path, method]) => `${method.toUpperCase()} ${path}`)
  expect([...new Set(served)].sort()).toEqual(described.toSorted())
  expect(described.toSorted()).toEqual([
    "GET /api/accounts",
    "GET /api/accounts/{a}",
    "GET /api/jobs",
    "GET /api/jobs/{j}",
    "GET /api/ledger",
    "GET /api/models",
    "GET /api/models/{m}",
    "GET /api/openapi.json",
    "GET /api/requests",
    "GET /api/requests/{r}",
    "GET /api/upstreams",
    "GET /api/upstreams/{u}",
    "GET /api/usage",
    "POST /api/accounts/{a}/adjustments",
    "POST /api/accounts/{a}/topups",
  ])
})

test("every operation has a name of its own, its parameters with their meaning, and all the ways it can be refused", () => {
  const names = operations().map(([, , { operationId }]) => operationId)
  expect(new Set(names).size).toBe(names.length)
  for (const [path, method, operation] of operations()) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!)
    const parameters = operation.parameters ?? []
    expect(parameters.filter((each) => each.in === "path").map(({ name }) => name)).toEqual(inPath)
    for (const parameter of parameters) {
      expect(parameter.description).toBeString()
      expect(parameter.required).toBe(parameter.in === "path")
    }
    // A list may be asked for things of an account that is not there.
    const names = inPath.length > 0 || (path !== "/api/accounts" && parameters.some(({ name }) => name === "account"))
    const posts = method === "post"
    const statuses = [
      ...(posts ? ["200", "201"] : ["200"]),
      ...["400", "401", ...(names ? ["404"] : [])],
      ...(posts ? ["413", "415"] : []),
      ...["500", "503"],
    ]
    expect(Object.keys(operation.responses).toSorted()).toEqual(statuses)
    for (const response of Object.values(operation.responses)) {
      expect(response.description).toBeString()
      expect(response.headers).toHaveProperty("x-request-id")
    }
    expect(operation.responses["401"]!.headers).toHaveProperty("www-authenticate")
  }
})

test("a list describes its limit, cursor and filters as what they stand for", () => {
  const parameters = description.paths["/api/accounts"]!.get!.parameters!
  expect(parameters.map(({ name }) => name)).toEqual(["limit", "cursor", "name", "plan", "suspended"])
  const schema = (name: string) => parameters.find((each) => each.name === name)!.schema
  expect(schema("limit")).toMatchObject({ type: "integer", minimum: 1, maximum: 500, default: 50 })
  expect(schema("cursor")).toMatchObject({ type: "string" })
  expect(schema("suspended")).toMatchObject({ type: "boolean" })
})

test("bodies are described with their fields, the required ones among them", () => {
  const topup = description.components.schemas.Topup!
  expect(Object.keys(topup.properties as Json)).toEqual(["amount", "note", "reference"])
  expect([topup.required, topup.additionalProperties]).toEqual([["amount"], false])
  expect(description.components.schemas.Adjustment!.required).toEqual(["amount", "note"])
  for (const [path, method, operation] of operations()) {
    expect([path, operation.requestBody?.required]).toEqual([path, method === "post" ? true : undefined])
  }
})

test("answers have the described fields and no others, the good ones and the refusals", async () => {
  for (const [path, method, operation] of operations()) {
    const ask = (at: string, init?: RequestInit): Promise<Response> =>
      method === "get"
        ? office.ask(at, init)
        : office.send(at, { reference: `described ${path}`, ...exampleBodies[path] }, init && { authorization: "" })
    const at = (example: (name: string) => string) => path.replace(/\{(\w+)\}/g, (_, name: string) => example(name))
    const real = at((name) => examples[name]!)
    const asked: readonly (readonly [number, Response])[] = [
      ...(method === "post" ? [[201, await ask(real)] as const] : []),
      ...(path === "/api/openapi.json" ? [] : [[200, await ask(real)] as const]),
      [400, await ask(`${real}?unknown=1`)],
      [401, await ask(real, { headers: {} })],
      ...(real === path ? [] : [[404, await ask(at(() => "nobody"))] as const]),
    ]
    for (const [status, response] of asked) {
      const body: unknown = await response.json()
      if (status === 200 && isObject(body) && Array.isArray(body.data))
        expect([path, body.data]).not.toEqual([path, []])
      const { error } = schemaOf(operation, status).safeParse(body)
      expect([path, response.status, error?.issues]).toEqual([path, status, undefined])
    }
  }
})
