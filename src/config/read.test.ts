import { expect, test } from "bun:test"
import { ConfigError, type ConfigProblem } from "./problems.ts"
import { readConfig } from "./read.ts"

const env = {
  OPENAI_API_KEY: "sk-openai",
  ACME_KEY: "acme-key-of-16-chars",
  ADMIN_PASSWORD: "correct horse",
  EMPTY: "",
}
const example = await Bun.file(new URL("example.yaml", import.meta.url)).text()

function read(text: string, environment: Record<string, string | undefined> = env) {
  return readConfig(text, "tollgate.yaml", environment).document
}

/** The message of a file that must be refused. */
function refusal(text: string, environment: Record<string, string | undefined> = env): string {
  return refusedWith(text, environment).message
}

function refusedWith(text: string, environment: Record<string, string | undefined> = env): ConfigError {
  try {
    readConfig(text, "tollgate.yaml", environment)
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error("the file was accepted")
}

const exampleDocument = {
  upstreams: [
    {
      name: "openai-main",
      vendor: "openai",
      baseUrl: "https://api.openai.com/v1",
      apiKeys: ["sk-openai"],
      headers: {},
      timeouts: {},
      concurrency: 0,
      settings: {},
    },
  ],
  models: [
    {
      name: "gpt-5",
      price: { input: "1.25", cached_input: "0.125", cache_write: "1.25", output: "10" },
      tokenizer: null,
      endpoints: null,
      routes: [
        { upstream: "openai-main", model: "gpt-5-2026-08", priority: 1, weight: 100 },
        { upstream: "azure-east", model: "gpt5-deploy", priority: 2, weight: 100 },
      ],
    },
    {
      name: "flux-image",
      price: { image: "0.04" },
      tokenizer: null,
      endpoints: null,
      routes: [{ upstream: "bfl", model: "flux-2-pro", priority: 1, weight: 100 }],
    },
    {
      name: "kling-video",
      price: { second: "0.07" },
      tokenizer: null,
      endpoints: null,
      routes: [{ upstream: "kling", model: "kling-v3", priority: 1, weight: 100 }],
    },
    {
      name: "tts",
      price: { character: "0.000015" },
      tokenizer: null,
      endpoints: null,
      routes: [{ upstream: "openai-main", model: "gpt-4o-mini-tts", priority: 1, weight: 100 }],
    },
  ],
  plans: [{ name: "default", concurrency: 50, models: ["*"], priceMultiplier: "1" }],
  accounts: [
    {
      name: "acme",
      plan: "default",
      concurrency: 10,
      balance: "100",
      keys: [{ name: "ci", key: "acme-key-of-16-chars" }],
    },
  ],
  people: [{ email: "root@example.com", password: "correct horse", role: "admin", account: "acme" }],
  timeouts: { nonStream: 120_000, firstToken: 60_000, silence: 120_000, total: 1_800_000, drain: 120_000 },
}

test("the documented example reads to the document it describes", () => {
  expect(read(example)).toEqual(exampleDocument as never)
})

test("the same file as JSON, indented by tabs, reads to the same document", () => {
  expect(read(JSON.stringify(Bun.YAML.parse(example), null, "\t"))).toEqual(exampleDocument as never)
})

test("an empty file, and sections without entries, ask for nothing", () => {
  expect(read("")).toEqual({})
  expect(read("# only a comment\n")).toEqual({})
  expect(read("models:\nupstreams: []\n")).toEqual({ upstreams: [] })
})

test("what the file leaves out has its documented default", () => {
  const document = read(
    "models: [{name: m, price: free, routes: [{upstream: u}]}]\nplans: [{name: p}]\naccounts: [{name: a}]",
  )
  expect(document.models?.[0]?.routes).toEqual([{ upstream: "u", model: "m", priority: 1, weight: 100 }])
  expect(document.plans).toEqual([{ name: "p", concurrency: 0, models: ["*"], priceMultiplier: "1" }])
  expect(document.accounts).toEqual([{ name: "a", plan: null, concurrency: null, balance: null, keys: [] }])
})

test("amounts keep every digit of the file", () => {
  const price = "{ input: 0.1, output: 0.12345678901234567890, character: 1.5e-7, request: '12345678901.0' }"
  expect(refusal(`models: [{name: m, price: ${price}, routes: []}]`)).toContain("request: must be less than 9000000000")
  const smaller = price.replace("12345678901.0", " 2.50 ")
  expect(read(`models: [{name: m, price: ${smaller}, routes: []}]`).models?.[0]?.price).toEqual({
    input: "0.1",
    output: "0.1234567890123456789",
    character: "0.00000015",
    request: "2.5",
  })
  expect(read('{"accounts":[{"name":"a","balance":8999999999.123456789}]}').accounts?.[0]?.balance).toBe(
    "8999999999.123456789",
  )
})

test("tiers are read in their order, with every digit; an empty list of them is none", () => {
  const price = `
      input: 1.25
      image: 0.04
      tiers:
        - { above_input: 200000, input: 2.50, output: 15e-1 }
        - { above_input: "\${LIMIT}", input: 5 }
        - { size: 1024x1536, quality: high, image: 0.25 }`
  const { models } = read(`models:\n  - name: m\n    routes: []\n    price:${price}`, { LIMIT: "500000" })
  expect(models?.[0]?.price).toEqual({
    input: "1.25",
    image: "0.04",
    tiers: [
      { aboveInput: 200_000, prices: { input: "2.5", output: "1.5" } },
      { aboveInput: 500_000, prices: { input: "5" } },
      { size: "1024x1536", quality: "high", prices: { image: "0.25" } },
    ],
  })
  const bare = read("models: [{name: m, routes: [], price: { audio_input: 1, audio_output: 2, tiers: [] }}]")
  expect(bare.models?.[0]?.price).toEqual({ audio_input: "1", audio_output: "2" })
})

test("a tier may stand before a wider one that leaves some of its prices alone", () => {
  const tiers = "[{ above_input: 9, input: 3, output: 5 }, { above_input: 5, input: 2 }]"
  const { models } = read(`models: [{name: m, routes: [], price: { input: 1, output: 1, tiers: ${tiers} }}]`)
  expect(models?.[0]?.price).toHaveProperty("tiers.length", 2)
})

test("a model's tokenizer and the retention of requests are read", () => {
  const { models } = read("models: [{name: m, price: free, tokenizer: cl100k_base, routes: []}]")
  expect(models?.[0]?.tokenizer).toBe("cl100k_base")
  expect(read("retention: { requests: 90d }").retention).toEqual({ requests: 7_776_000_000 })
  expect(read("retention: { requests: 1h }").retention).toEqual({ requests: 3_600_000 })
  expect(read("retention: { requests: forever }").retention).toEqual({ requests: null })
})

test("an upstream's own fields are read: key pool, headers, time-outs, the vendor's settings, no trailing slash", () => {
  const upstream = `
upstreams:
  - name: local
    vendor: openai-compatible
    base_url: http://127.0.0.1:9000/v1/
    api_keys: [one, two]
    headers: { X-Team: "blue" }
    timeouts: { first_token: 500ms, total: 2h }
    concurrency: 8
    no_stream_options: true
  - { name: keyless, vendor: ollama }
`
  expect(read(upstream).upstreams).toEqual([
    {
      name: "local",
      vendor: "openai-compatible",
      baseUrl: "http://127.0.0.1:9000/v1",
      apiKeys: ["one", "two"],
      headers: { "X-Team": "blue" },
      timeouts: { firstToken: 500, total: 7_200_000 },
      concurrency: 8,
      settings: { no_stream_options: true },
    },
    {
      name: "keyless",
      vendor: "ollama",
      baseUrl: null,
      apiKeys: [],
      headers: {},
      timeouts: {},
      concurrency: 0,
      settings: {},
    },
  ])
})

test("the environment is read anywhere in a text, and into numbers and switches where a field wants one", () => {
  const text = `
upstreams:
  - name: a
    vendor: openai
    base_url: https://\${HOST}:\${PORT}/v1
    api_key: \${KEY}
    concurrency: \${LIMIT}
    headers: { x-note: 'costs $\${5}, $5' }
allow_private_addresses: \${DEV}
`
  const document = read(text, { HOST: "example.com", PORT: "8443", KEY: "1234", LIMIT: "7", DEV: "true" })
  expect(document.upstreams?.[0]).toMatchObject({
    baseUrl: "https://example.com:8443/v1",
    apiKeys: ["1234"],
    concurrency: 7,
    headers: { "x-note": `costs \${5}, $5` },
  })
  expect(document.allowPrivateAddresses).toBe(true)
})

test("lineOf tells where a value stands, or the nearest thing around it", () => {
  const { lineOf } = readConfig(example, "tollgate.yaml", env)
  const lineWith = (needle: string) => example.split("\n").findIndex((line) => line.includes(needle)) + 1
  expect(lineOf("models[0].routes[1].upstream")).toBe(lineWith("azure-east"))
  expect(lineOf("models[1].routes[0].weight")).toBe(lineWith("flux-2-pro"))
  expect(lineOf("people[0].email")).toBe(lineWith("root@example.com"))
  expect(lineOf("nothing")).toBe(1)
})

test("every problem is told at once, in the order of the file", () => {
  const text = `
upstreams:
  - name: a
    vendor: openia
    concurrency: -1
models:
  - name: m
    price: { input: cheap }
    routes: [ { upstream: a, priority: high } ]
accounts:
  - { name: x, balance: 0.0000000001, keys: [ { name: k, key: short } ] }
`
  expect(
    refusal(text)
      .split("\n")
      .map((line) => line.replace(/: openai, azure.*/, ": …")),
  ).toEqual([
    'tollgate.yaml:4: upstreams[0].vendor: must be a known vendor (got "openia"; did you mean "openai"?): …',
    "tollgate.yaml:5: upstreams[0].concurrency: must be a whole number from 0 to 1000000 (got -1)",
    'tollgate.yaml:8: models[0].price.input: must be a decimal number such as 1.25 (got "cheap")',
    'tollgate.yaml:9: models[0].routes[0].priority: must be a whole number from 0 to 1000 (got "high")',
    "tollgate.yaml:11: accounts[0].keys[0].key: must have at least 16 characters",
    "tollgate.yaml:11: accounts[0].balance: must have at most 9 decimals (got 0.0000000001)",
  ])
})

test("problems come as data, too", () => {
  const problems: readonly ConfigProblem[] = refusedWith("models:\n  - name: m\n    routes: []\n").problems
  expect(problems).toEqual([
    { path: "models[0].price", line: 2, message: expect.stringContaining('is required, and must be "free"') },
  ])
})

test("an unknown vendor is answered with all known ones", () => {
  const message = refusal("upstreams: [{name: a, vendor: banana, api_key: k}]")
  expect(message).toContain('(got "banana"): openai, azure-openai, anthropic')
  expect(message).toEndWith("bfl")
})
