import { expect, test } from "bun:test"
import fc from "fast-check"
import { endpoints } from "../core/endpoints.ts"
import { type PriceTier, priceUnits } from "../core/price.ts"
import { longestTimeoutMs } from "../core/timeouts.ts"
import { tokenizers } from "../core/tokenizer.ts"
import type { VendorSetting } from "../core/vendor.ts"
import { canonicalDecimal } from "../lib/decimal.ts"
import { vendors } from "../vendors/presets.ts"
import type { ConfigDocument, UpstreamConfig } from "./document.ts"
import * as fields from "./fields.ts"
import { readConfig } from "./read.ts"
import { placeSecrets } from "./secret-names.ts"
import { writeConfig } from "./write.ts"

const noPlaceholders: ReadonlySet<string> = new Set()

/** Texts that YAML, the environment or the program could mistake for something else. */
const trickyTexts = [
  "yes",
  "null",
  "~",
  "0x10",
  "1e3",
  "007",
  "*",
  "#a",
  "a: b",
  "- a",
  "{a}",
  "[a]",
  "&a",
  "!a",
  "%a",
  "@a",
  "'",
  '"',
  "free",
]
const tricky = fc.constantFrom(...trickyTexts, `\${HOME}`, `$\${HOME}`, `\${`, "$$", "a$", "👍🏽 日本")

const accepted = (check: (value: string) => string | null) =>
  fc
    .oneof(tricky, fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }))
    .filter((value) => check(value) === null)

const name = accepted(fields.nameProblem)
const credential = fc
  .oneof(tricky, fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 40 }))
  .filter((value) => fields.credentialProblem(value) === null)
const accountKey = credential.map((key) => `${key}${"k".repeat(fields.shortestAccountKey)}`)
const duration = fc.integer({ min: 1, max: longestTimeoutMs })

const decimal = (places: number, sign = "") =>
  fc
    .tuple(
      fc.constantFrom("", sign),
      fc.bigInt({ min: 0n, max: fields.moneyLimit - 1n }),
      fc.stringMatching(new RegExp(`^[0-9]{0,${places}}$`)),
    )
    .map(([minus, whole, fraction]) => canonicalDecimal(`${minus}${whole}.${fraction}`) ?? "0")

const timeouts = fc.record(
  { nonStream: duration, firstToken: duration, silence: duration, total: duration },
  { requiredKeys: [] },
)

const distinct = <Item>(item: fc.Arbitrary<Item>, by: (item: Item) => string) =>
  fc.uniqueArray(item, { maxLength: 3, selector: by })

const headers = fc.dictionary(
  fc.stringMatching(/^x-[a-z0-9.!-]{1,8}$/).filter((name) => fields.headerNameProblem(name) === null),
  fc.string({ unit: "grapheme-ascii", maxLength: 12 }).filter((value) => fields.headerValueProblem(value) === null),
  { maxKeys: 2, noNullPrototype: true },
)

function settingValue({ type, choices }: VendorSetting): fc.Arbitrary<boolean | string> {
  if (type === "boolean") return fc.boolean()
  return choices === undefined ? name : fc.constantFrom(...choices)
}

const upstream: fc.Arbitrary<UpstreamConfig> = fc.constantFrom(...vendors).chain((vendor) =>
  fc.record({
    name,
    vendor: fc.constant(vendor.name),
    baseUrl: fc.constantFrom(
      "https://api.example.com/v1",
      "http://127.0.0.1:8080",
      vendor.baseUrl ?? "https://own.example.com",
    ),
    apiKeys: fc.uniqueArray(credential, { minLength: vendor.keyOptional ? 0 : 1, maxLength: 3 }),
    headers,
    timeouts,
    concurrency: fc.nat(1_000_000),
    settings: fc
      .subarray(Object.entries(vendor.settings ?? {}))
      .chain((chosen) => fc.record(Object.fromEntries(chosen.map(([key, setting]) => [key, settingValue(setting)])))),
  }),
)

const route = fc.record({
  upstream: name,
  model: name,
  priority: fc.integer({ min: 0, max: 1000 }),
  weight: fc.integer({ min: 1, max: 1_000_000 }),
})

const unitPrices = fc.dictionary(fc.constantFrom(...priceUnits), decimal(fields.rateDecimals), {
  minKeys: 1,
  noNullPrototype: true,
})

/** One bound above the other, so that no tier hides another; every condition is of use where tokens are priced. */
const tiers: fc.Arbitrary<readonly PriceTier[]> = fc
  .uniqueArray(fc.integer({ min: 1, max: 1_000_000_000 }), { minLength: 1, maxLength: 3 })
  .chain((bounds) =>
    fc.tuple(
      ...bounds
        .toSorted((a, b) => a - b)
        .map((aboveInput) =>
          fc
            .record({ size: name, quality: name }, { requiredKeys: [] })
            .chain((words) => unitPrices.map((prices) => ({ aboveInput, ...words, prices }))),
        ),
    ),
  )

const price = fc.oneof(
  fc.constant("free" as const),
  unitPrices,
  fc.tuple(unitPrices, decimal(2), tiers).map(([prices, input, some]) => ({ ...prices, input, tiers: some })),
)

const model = fc.record({
  name,
  price,
  tokenizer: fc.option(fc.constantFrom(...tokenizers)),
  endpoints: fc.option(fc.uniqueArray(fc.constantFrom(...endpoints), { maxLength: 3 })),
  routes: fc.array(route, { maxLength: 3 }),
})

const plan = fc.record({
  name,
  concurrency: fc.nat(1_000_000),
  models: fc.oneof(fc.constant(["*"]), fc.array(name, { maxLength: 3 })),
  priceMultiplier: fc.oneof(fc.constant("1"), decimal(6)),
})

const account = fc.record({
  name,
  plan: fc.option(name),
  concurrency: fc.option(fc.nat(1_000_000)),
  balance: fc.option(decimal(fields.moneyDecimals, "-")),
  keys: fc.constant<{ name: string; key: string }[]>([]),
})

const person = fc.record({
  email: fc.emailAddress().filter((email) => fields.emailProblem(email) === null),
  password: accepted(fields.passwordProblem),
  role: fc.constantFrom("admin" as const, "member" as const),
  account: fc.option(name),
})

/** Keys are handed out last: one key may belong to one account only. */
const accounts = fc
  .tuple(
    distinct(account, (one) => one.name),
    distinct(accountKey, String),
  )
  .map(([list, keys]) =>
    list.map((one, index) => ({
      ...one,
      keys: keys.filter((_, at) => at % list.length === index).map((key) => ({ name: key.slice(0, 20).trim(), key })),
    })),
  )
  .filter((list) => list.every((one) => new Set(one.keys.map((key) => key.name)).size === one.keys.length))

const documents: fc.Arbitrary<ConfigDocument> = fc.record(
  {
    upstreams: distinct(upstream, (one) => one.name),
    models: distinct(model, (one) => one.name),
    plans: distinct(plan, (one) => one.name),
    accounts,
    people: distinct(person, (one) => one.email.toLowerCase()),
    timeouts: timeouts.chain((some) =>
      fc.record({ drain: duration }, { requiredKeys: [] }).map((drain) => ({ ...some, ...drain })),
    ),
    corsOrigins: fc.array(fc.constantFrom("*", "https://app.example.com", "http://localhost:3000")),
    allowPrivateAddresses: fc.boolean(),
    retention: fc.record({ requests: fc.option(fc.integer({ min: 3_600_000, max: 36_500 * 86_400_000 })) }),
  },
  { requiredKeys: [] },
)

test("any document, written and read again, is the same document", () => {
  fc.assert(
    fc.property(documents, (document) => {
      const text = writeConfig(document, noPlaceholders)
      expect(readConfig(text, "export.yaml", { HOME: "wrong" }).document).toEqual(document)
    }),
    { numRuns: 150 },
  )
})

test("any document survives with its secrets left to the environment, and without them in the text", () => {
  fc.assert(
    fc.property(documents, (document) => {
      const { document: placed, placeholders, names } = placeSecrets(document)
      const secrets = [
        ...(document.upstreams ?? []).flatMap((one) => one.apiKeys),
        ...(document.accounts ?? []).flatMap((one) => one.keys.map((key) => key.key)),
        ...(document.people ?? []).map((one) => one.password),
      ]
      const env = Object.fromEntries(names.map((name, index) => [name, secrets[index]]))
      expect(readConfig(writeConfig(placed, placeholders), "export.yaml", env).document).toEqual(document)
    }),
    { numRuns: 50 },
  )
})

test("the text is what a person would have written, without defaults", () => {
  const example: ConfigDocument = {
    upstreams: [
      {
        name: "openai-main",
        vendor: "openai",
        baseUrl: null,
        apiKeys: [`\${OPENAI_MAIN_API_KEY}`],
        headers: { "x-team": "blue" },
        timeouts: { firstToken: 30_000 },
        concurrency: 0,
        settings: {},
      },
    ],
    models: [
      {
        name: "gpt-5",
        price: { input: "1.25", character: "0.00000015" },
        tokenizer: null,
        endpoints: ["chat"],
        routes: [
          { upstream: "openai-main", model: "gpt-5", priority: 1, weight: 100 },
          { upstream: "spare", model: "gpt-5-mini", priority: 2, weight: 100 },
        ],
      },
      {
        name: "gpt-4",
        price: {
          input: "2",
          image: "0.04",
          tiers: [
            { aboveInput: 200_000, prices: { input: "4" } },
            { size: "1024x1536", quality: "high", prices: { image: "0.25" } },
          ],
        },
        tokenizer: "cl100k_base",
        endpoints: null,
        routes: [{ upstream: "openai-main", model: "gpt-4", priority: 1, weight: 100 }],
      },
    ],
    plans: [{ name: "default", concurrency: 50, models: ["*"], priceMultiplier: "1" }],
    accounts: [
      {
        name: "acme",
        plan: "default",
        concurrency: null,
        balance: null,
        keys: [{ name: "ci", key: "k-k-k-k-k-k-k-k-k" }],
      },
    ],
    people: [{ email: "a@b.c", password: "pw", role: "admin", account: "acme" }],
    timeouts: { nonStream: 120_000, drain: 1_500 },
    retention: { requests: 30 * 86_400_000 },
  }
  expect(writeConfig(example, new Set([`\${OPENAI_MAIN_API_KEY}`]))).toBe(`upstreams:
  - name: openai-main
    vendor: openai
    api_key: \${OPENAI_MAIN_API_KEY}
    headers:
      x-team: blue
    timeouts: { first_token: 30s }
models:
  - name: gpt-5
    price: { input: 1.25, character: "0.00000015" }
    endpoints: [ chat ]
    routes:
      - { upstream: openai-main }
      - { upstream: spare, model: gpt-5-mini, priority: 2 }
  - name: gpt-4
    price:
      input: 2
      image: 0.04
      tiers:
        - { above_input: 200000, input: 4 }
        - { size: 1024x1536, quality: high, image: 0.25 }
    tokenizer: cl100k_base
    routes:
      - { upstream: openai-main }
plans:
  - { name: default, concurrency: 50 }
accounts:
  - name: acme
    plan: default
    keys:
      - { name: ci, key: k-k-k-k-k-k-k-k-k }
people:
  - { email: a@b.c, password: pw, role: admin, account: acme }
timeouts: { non_stream: 2m, drain: 1500ms }
retention: { requests: 30d }
`)
})
