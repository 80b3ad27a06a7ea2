import { describe, expect, test } from "bun:test"
import { ConfigError } from "./problems.ts"
import { readConfig } from "./read.ts"

const env = { SECRET: "topsecret-value", SHORT: "tiny", WORD: "seven", EMPTY: "" }

function refusal(text: string): string {
  try {
    readConfig(text, "t.yaml", env)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return "accepted"
}

const upstream = (fields: string) => `upstreams:\n  - name: u\n    vendor: openai\n    ${fields}\n`
const keyed = (fields: string) => upstream(`api_key: k\n    ${fields}`)
const model = (fields: string) => `models:\n  - name: m\n    routes: []\n    ${fields}\n`
const tiers = (first: string) => model(`price:\n      input: 1\n      output: 2\n      tiers:\n        - ${first}`)
const route = (fields: string) => `models:\n  - name: m\n    price: free\n    routes: [ { upstream: u, ${fields} } ]\n`
const account = (fields: string) => `accounts:\n  - name: a\n    ${fields}\n`

describe("a file is refused with its line, its field and what to write instead", () => {
  test.each([
    // syntax
    ["a: 1\na: 2", 't.yaml:2: the key "a" is there twice'],
    [
      "upstreams: [",
      "t.yaml:1: not valid YAML or JSON: is not indented like the lines around it, or a bracket is not closed",
    ],
    ["models:\n\t- name: x", "t.yaml:2: not valid YAML or JSON: is indented by tabs; use spaces"],
    ["plans: []\n---\nplans: []", 't.yaml:2: not valid YAML or JSON: holds more than one document (remove the "---")'],
    ["plans: *missing", "t.yaml:1: plans: is an alias (*) of an anchor (&) that does not exist"],
    ["- a\n- b", "t.yaml:1: must be a map (got a list)"],
    ["just text", "t.yaml:1: must be a map"],
    // fields
    ["modles: []", 't.yaml:1: modles: is not a known field (did you mean "models"?)'],
    ["models: 5", "t.yaml:1: models: must be a list (got 5)"],
    ["models: [5]", "t.yaml:1: models[0]: must be a map (got 5)"],
    [upstream("api-key: k"), 't.yaml:4: upstreams[0].api-key: is not a known field (did you mean "api_key"?)'],
    [keyed("banana: 1"), "t.yaml:5: upstreams[0].banana: is not a known field"],
    [keyed("timeouts: { drain: 5s }"), "t.yaml:5: upstreams[0].timeouts.drain: is not a known field"],
    [
      keyed("no_stream_options: true"),
      't.yaml:5: upstreams[0].no_stream_options: is not a setting of vendor "openai" (only of openai-compatible)',
    ],
    ["upstreams:\n  - vendor: ollama", "t.yaml:2: upstreams[0].name: is required"],
    [
      `upstreams: [{ name: "${"n".repeat(201)}", vendor: ollama }]`,
      "t.yaml:1: upstreams[0].name: must have at most 200 characters",
    ],
    [
      'upstreams: [{ name: "a\\nb", vendor: ollama }]',
      "t.yaml:1: upstreams[0].name: must not contain line breaks or other control characters",
    ],
    ['upstreams: [{ name: " a", vendor: ollama }]', "t.yaml:1: upstreams[0].name: must not begin or end with a space"],
    ["upstreams: [{ name: 5, vendor: ollama }]", "t.yaml:1: upstreams[0].name: must be text (got 5)"],
    // credentials and addresses
    [
      upstream("concurrency: 1"),
      't.yaml:2: upstreams[0].api_key: is required for vendor "openai" (or api_keys for several)',
    ],
    [upstream("api_keys: []"), 't.yaml:2: upstreams[0].api_key: is required for vendor "openai"'],
    [keyed("api_keys: [b]"), "t.yaml:5: upstreams[0].api_keys: cannot stand beside api_key: give one of the two"],
    [upstream("api_keys: [b, b]"), "t.yaml:4: upstreams[0].api_keys[1]: is the same as upstreams[0].api_keys[0]"],
    [
      upstream("api_key: 'two words'"),
      "t.yaml:4: upstreams[0].api_key: must contain only printable ASCII characters without spaces",
    ],
    [
      "upstreams: [{ name: u, vendor: vllm }]",
      't.yaml:1: upstreams[0].base_url: is required for vendor "vllm": every customer',
    ],
    [keyed("base_url: ftp://x"), 't.yaml:5: upstreams[0].base_url: must be an http or https address (got "ftp://x")'],
    [
      keyed("base_url: https:api"),
      't.yaml:5: upstreams[0].base_url: must be an http or https address (got "https:api")',
    ],
    [keyed("base_url: https://x/v1?a=b"), "t.yaml:5: upstreams[0].base_url: must not have a query or a fragment"],
    [
      keyed("base_url: https://me:pw@x"),
      "t.yaml:5: upstreams[0].base_url: must not carry a user name or password; use api_key",
    ],
    // headers
    [
      keyed("headers: { Authorization: x }"),
      "t.yaml:5: upstreams[0].headers.Authorization: is a header that the gateway sets itself",
    ],
    [
      keyed("headers: { Content-Length: '1' }"),
      "t.yaml:5: upstreams[0].headers.Content-Length: is a header that the gateway sets itself",
    ],
    [keyed("headers: { 'a b': x }"), 't.yaml:5: upstreams[0].headers["a b"]: is not a valid header name'],
    [
      keyed('headers: { a: "x\\r\\ny: z" }'),
      "t.yaml:5: upstreams[0].headers.a: must not contain line breaks or characters outside Latin-1",
    ],
    [
      keyed("headers: { X-A: x, x-a: y }"),
      "t.yaml:5: upstreams[0].headers.x-a: is there twice: upper and lower case are the same header",
    ],
    // durations
    [
      "timeouts: { silence: 60 }",
      "t.yaml:1: timeouts.silence: must be a duration such as 60s, 500ms, 30m or 2h (got 60)",
    ],
    [
      "timeouts: { silence: -5s }",
      't.yaml:1: timeouts.silence: must be a duration such as 60s, 500ms, 30m or 2h (got "-5s")',
    ],
    ["timeouts: { silence: 0s }", 't.yaml:1: timeouts.silence: must be longer than nothing (got "0s")'],
    ["timeouts: { silence: 2147483648ms }", "t.yaml:1: timeouts.silence: must be shorter than 25 days"],
    // prices and amounts
    [
      model("endpoints: [chat]"),
      't.yaml:2: models[0].price: is required, and must be "free" or a map of prices by unit',
    ],
    [model("price: 5"), 't.yaml:4: models[0].price: must be "free" or a map of prices by unit'],
    [model("price: fre"), '(got "fre")'],
    [model("price: {}"), "t.yaml:4: models[0].price: must have at least one unit (input, cached_input,"],
    [model("price: { inptu: 1 }"), 't.yaml:4: models[0].price.inptu: is not a known field (did you mean "input"?)'],
    [model("price: { input: -1 }"), "t.yaml:4: models[0].price.input: must not be negative (got -1)"],
    [
      model("price: { input: 0x10 }"),
      "t.yaml:4: models[0].price.input: must be a decimal number such as 1.25 (got 0x10)",
    ],
    [
      model("price: { input: .inf }"),
      "t.yaml:4: models[0].price.input: must be a decimal number such as 1.25 (got .inf)",
    ],
    [
      model("price: { input: [1] }"),
      "t.yaml:4: models[0].price.input: must be a decimal number such as 1.25 (got a list)",
    ],
    [
      account("balance: 9000000000"),
      "t.yaml:3: accounts[0].balance: must be between -9000000000 and 9000000000 (got 9000000000)",
    ],
    [
      "plans: [{ name: p, price_multiplier: -0.5 }]",
      "t.yaml:1: plans[0].price_multiplier: must not be negative (got -0.5)",
    ],
    [model("price: { input: 1, tiers: {} }"), "t.yaml:4: models[0].price.tiers: must be a list (got a map)"],
    [
      model("price: { tiers: [ { above_input: 5, input: 1 } ] }"),
      "t.yaml:4: models[0].price: must have at least one unit (input,",
    ],
    [
      tiers("{ input: 2 }"),
      "t.yaml:8: models[0].price.tiers[0]: must have at least one condition (above_input, size, quality)",
    ],
    [
      tiers("{ above_input: 5 }"),
      "t.yaml:8: models[0].price.tiers[0]: must have at least one price (input, cached_input,",
    ],
    [
      tiers("{ above_input: 0, input: 2 }"),
      "t.yaml:8: models[0].price.tiers[0].above_input: must be a whole number from 1 to 1000000000 (got 0)",
    ],
    [
      tiers("{ above_input: 1.5, input: 2 }"),
      "t.yaml:8: models[0].price.tiers[0].above_input: must be a whole number from 1 to 1000000000 (got 1.5)",
    ],
    [tiers("{ above_input: 5, input: -2 }"), "t.yaml:8: models[0].price.tiers[0].input: must not be negative (got -2)"],
    [
      tiers("{ above_inptu: 5, input: 2 }"),
      't.yaml:8: models[0].price.tiers[0].above_inptu: is not a known field (did you mean "above_input"?)',
    ],
    [tiers("{ size: 1024, input: 2 }"), "t.yaml:8: models[0].price.tiers[0].size: must be text (got 1024)"],
    [
      tiers("{ above_input: 9, input: 3 }\n        - { above_input: 5, input: 2, output: 1 }"),
      "t.yaml:8: models[0].price.tiers[0]: has no effect: models[0].price.tiers[1] replaces it",
    ],
    [
      tiers("{ size: A, quality: high, input: 3 }\n        - { size: a, input: 2 }"),
      "t.yaml:8: models[0].price.tiers[0]: has no effect: models[0].price.tiers[1] replaces it",
    ],
    [
      model("price: { second: 1, tiers: [ { above_input: 5, second: 2 } ] }"),
      "t.yaml:4: models[0].price.tiers[0].above_input: is of no use without a price by one of input, cached_input,",
    ],
    [
      model("price: { second: 1, tiers: [ { quality: high, second: 2 } ] }"),
      "t.yaml:4: models[0].price.tiers[0].quality: is of no use without a price by one of image, input,",
    ],
    [
      model("price: free\n    tokenizer: o200k"),
      't.yaml:5: models[0].tokenizer: must be a known tokenizer (got "o200k"): o200k_base, cl100k_base',
    ],
    // retention
    ["retention: {}", "t.yaml:1: retention.requests: is required, and must be a duration such as 90d or 12h"],
    ["retention: { requests: 90 }", "t.yaml:1: retention.requests: must be a duration such as 90d or 12h, or the word"],
    ["retention: { requests: 59m }", 't.yaml:1: retention.requests: must be at least 1h (got "59m")'],
    ["retention: { requests: 36501d }", "t.yaml:1: retention.requests: must be at most 36500d, or the word forever"],
    ["retention: { ledger: 1d, requests: 1d }", "t.yaml:1: retention.ledger: is not a known field"],
    // routes and endpoints
    [
      model("price: free\n    endpoints: [chta]"),
      't.yaml:5: models[0].endpoints[0]: must be a known endpoint (got "chta"; did you mean "chat"?): chat, responses',
    ],
    [
      model("price: free\n    endpoints: [chat, chat]"),
      "t.yaml:5: models[0].endpoints[1]: is the same as models[0].endpoints[0]",
    ],
    [
      route("weight: 0"),
      "t.yaml:4: models[0].routes[0].weight: must be a whole number from 1 to 1000000 (remove the route to stop using it) (got 0)",
    ],
    [route("priority: 1.5"), "t.yaml:4: models[0].routes[0].priority: must be a whole number from 0 to 1000 (got 1.5)"],
    [
      route("priority: 1001"),
      "t.yaml:4: models[0].routes[0].priority: must be a whole number from 0 to 1000 (got 1001)",
    ],
    ["models: [{ name: m, price: free }]", "t.yaml:1: models[0].routes: is required, and must be a list"],
    // people and duplicates
    [
      "people: [{ email: nobody, password: x, role: admin }]",
      'people[0].email: must be an e-mail address such as ada@example.com (got "nobody")',
    ],
    [
      "people: [{ email: a@b.c, password: x, role: boss }]",
      'people[0].role: must be a known role (got "boss"): admin, member',
    ],
    [
      "people: [{ email: a@b.c, password: x, role: admin }, { email: A@b.c, password: y, role: member }]",
      'people[1].email: is the same as that of people[0] (got "A@b.c")',
    ],
    ["plans:\n  - name: p\n  - name: p", 't.yaml:3: plans[1].name: is the same as that of plans[0] (got "p")'],
  ])("%#: %p", (text, message) => {
    expect(refusal(text)).toContain(message.trim())
  })
})

test("one account key cannot belong to two accounts, and is not shown", () => {
  const key = "the-very-same-secret-key"
  const text = `accounts: [{ name: a, keys: [{ name: x, key: ${key} }] }, { name: b, keys: [{ name: x, key: ${key} }] }]`
  expect(refusal(text)).toBe("t.yaml:1: accounts[1].keys[0].key: is the same as that of accounts[0].keys[0]")
})

test("a missing environment variable is named with its field, once, without further complaints about the value", () => {
  expect(refusal(keyed(`base_url: https://\${HOST}/`))).toBe(
    "t.yaml:5: upstreams[0].base_url: environment variable HOST is not set",
  )
  expect(refusal(upstream(`api_key: \${NOPE}`))).toBe(
    "t.yaml:4: upstreams[0].api_key: environment variable NOPE is not set",
  )
  expect(refusal(model(`price: { input: "\${NOPE}" }`))).toBe(
    "t.yaml:4: models[0].price.input: environment variable NOPE is not set",
  )
})

test("a broken reference to the environment is refused", () => {
  expect(refusal(upstream(`api_key: "\${SECRET"`))).toContain(`upstreams[0].api_key: has "\${" without "}"`)
  expect(refusal(upstream(`api_key: "\${NOT-A-NAME}"`))).toContain(
    "upstreams[0].api_key: names no environment variable",
  )
})

test("an unquoted reference inside braces gets the advice to quote it", () => {
  expect(refusal(`accounts: [ { name: a, keys: [ { name: k, key: \${SECRET} } ] } ]`)).toContain(
    `write "\${NAME}" in quotes`,
  )
})

test("an empty variable is not a credential", () => {
  expect(refusal(upstream(`api_key: \${EMPTY}`))).toBe("t.yaml:4: upstreams[0].api_key: must not be empty")
})

test.each([
  ["an account key that is too short", account("keys: [ { name: k, key: sesame } ]"), "sesame"],
  ["a key from the environment", account(`keys: [ { name: k, key: "\${SHORT}" } ]`), "tiny"],
  ["a number from the environment", `plans: [ { name: p, concurrency: "\${WORD}" } ]`, "seven"],
  ["a vendor from the environment", `upstreams: [ { name: u, vendor: "\${WORD}" } ]`, "seven"],
  ["a price from the environment", model(`price: { input: "x\${WORD}" }`), "seven"],
  ["a password that is no text", "people: [ { email: a@b.c, password: 80085, role: admin } ]", "80085"],
  ["keys written as text", account("keys: sesame-open-up"), "sesame"],
  ["an API key that is no text", upstream("api_key: 80085"), "80085"],
  ["a header value", keyed('headers: { x-token: "sesame\\u0007" }'), "sesame"],
  ["a password in an address", keyed("base_url: https://me:sesame@x"), "sesame"],
  ["a password in broken YAML", "people: [ { email: a@b.c, password: sesame: x: y } ]", "sesame"],
  ["an unquoted alias", upstream("api_key: *sesame"), "sesame"],
  ["a stray secret", "sesame\nmodels: []", "sesame"],
  ["a secret and nothing else", "sesame", "sesame"],
])("secrets stay out of messages: %s", (_what, text, secret) => {
  const message = refusal(text)
  expect(message).toStartWith("t.yaml:")
  expect(message).not.toContain(secret)
})

test("aliases are followed, but neither in circles nor into millions of values", () => {
  const shared = "plans:\n  - &p { name: a, models: &list [x, y] }\n  - { name: b, models: *list }\n"
  expect(readConfig(shared, "t.yaml", env).document.plans?.[1]?.models).toEqual(["x", "y"])
  expect(refusal("plans: &a [*a]")).toContain("is nested more than 16 levels deep")
  const levels = Array.from({ length: 9 }, (_, level) => `l${level + 1}: &l${level + 1} [${`*l${level},`.repeat(9)}]`)
  expect(refusal(`l0: &l0 [x]\n${levels.join("\n")}`)).toContain("uses more than 1000 aliases")
  const wide = `wide: &wide [${"x,".repeat(300)}]\n`
  expect(refusal(`${wide}all: [${"*wide,".repeat(900)}]`)).toContain("has more than 200000 values")
})

test("a key named like an object's machinery is an unknown field, not an accident", () => {
  expect(refusal('{"__proto__": {"models": []}, "constructor": 1}')).toContain("__proto__: is not a known field")
})
