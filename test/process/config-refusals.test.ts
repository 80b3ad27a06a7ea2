import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { join } from "node:path"
import { vendorNames } from "../../src/vendors/presets.ts"
import { workbench } from "../support/workbench.ts"

/** A config file that cannot be used: the message names field and line, exit code 2, nothing changed. */

setDefaultTimeout(30_000)
const bench = workbench()
afterAll(() => bench.clear())

const key = "sk-process-0123456789"
const longMasterKey = "a master key of at least 32 characters"

const goodText = `upstreams:
  - { name: main, vendor: openai, base_url: "http://127.0.0.1:1/v1", api_key: upstream-credential }
models:
  - { name: m, price: free, routes: [{ upstream: main, model: sim-large }] }
accounts:
  - { name: acme, balance: 5, keys: [{ name: ci, key: ${key} }] }
`

let data = ""
let before = ""
beforeAll(async () => {
  data = bench.freshData()
  const applied = await bench.run(["apply", bench.file("good.yaml", goodText), "--data", data])
  expect(applied.code).toBe(0)
  before = (await bench.run(["export", "--data", data])).out
  expect(before).toContain("name: acme")
})

// What a mistake stands beside is right and would be a change, so that a half-applied file is seen.
const extraPlan = "plans: [{ name: extra }]\n"
const cases: readonly [string, string, readonly string[]][] = [
  ["YAML that cannot be read", 'plans: [{ name: extra }\nmodels: "', ["FILE:"]],
  ["one bare text", "hello", ["FILE:1: must be a map"]],
  [
    "an unknown vendor",
    `${extraPlan}upstreams:\n  - { name: a, vendor: opnai, api_key: k }\n`,
    ["FILE:3: upstreams[0].vendor: ", '(got "opnai"; did you mean "openai"?)', vendorNames.join(", ")],
  ],
  [
    "an unknown upstream",
    `${extraPlan}models:\n  - name: n\n    price: free\n    routes:\n      - { upstream: mian }\n`,
    ['FILE:6: models[0].routes[0].upstream: "mian" is not an upstream (did you mean "main"?)\n'],
  ],
  [
    "a variable that is not set",
    `${extraPlan}upstreams:\n  - name: b\n    vendor: openai\n    api_key: \${NO_SUCH_VARIABLE}\n`,
    ["FILE:5: upstreams[0].api_key: environment variable NO_SUCH_VARIABLE is not set\n"],
  ],
  [
    "a model without a price",
    `${extraPlan}models:\n  - name: n\n    routes: [{ upstream: main }]\n`,
    ["FILE:3: models[0].price: is required"],
  ],
  [
    "a model without routes",
    `${extraPlan}models:\n  - name: n\n    price: free\n    routes: []\n`,
    ["FILE:5: models[0].routes: "],
  ],
  [
    "an unknown plan",
    `${extraPlan}accounts:\n  - { name: other, plan: extr }\n`,
    ['FILE:3: accounts[0].plan: "extr" is not a plan (did you mean "extra"?)\n'],
  ],
  [
    "a person of an unknown account",
    `${extraPlan}people:\n  - { email: a@example.com, password: hunter2, role: admin, account: acm }\n`,
    ['FILE:3: people[0].account: "acm" is not an account (did you mean "acme"?)\n'],
  ],
  [
    "a key that another account has already",
    `${extraPlan}accounts:\n  - { name: other, keys: [{ name: ci, key: ${key} }] }\n`,
    ['key "ci" of account "other" has the same secret as key "ci" of account "acme"'],
  ],
]
test.each(cases)("%s", async (name, text, expected) => {
  const file = bench.file(`${name.replaceAll(" ", "-")}.yaml`, text)
  const { code, out, err } = await bench.run(["apply", file, "--data", data])
  expect({ code, out, err }).toMatchObject({ code: 2, out: "" })
  for (const part of expected) expect(err).toContain(part.replace("FILE:", `${file}:`))
  expect(err).not.toContain(key)
  expect(err).not.toContain("    at ")
})

test("serve refuses such a file just as apply does", async () => {
  for (const [name, text] of [cases[0]!, cases[3]!]) {
    const file = bench.file("the-same.yaml", text)
    const applied = await bench.run(["apply", file, "--data", data])
    const served = await bench.run(["serve", "--port", "0", "--config", file, "--data", data])
    expect([name, served]).toEqual([name, applied])
  }
})

test("several mistakes are told together, in the order of the file, each with its field and line", async () => {
  const text = `upstreams:
- { name: a, vendor: openai }
- { name: a, vendor: nobody, api_key: k }
models:
- { name: n, price: { inptu: 1 }, routes: [{ upstream: a, weight: -1 }] }
accounts:
- { name: c, balance: lots, keys: [{ name: k, key: short }] }
timeouts: { silence: soon }
`
  const file = bench.file("several.yaml", text)
  const { code, err } = await bench.run(["apply", file, "--data", data])
  expect(code).toBe(2)
  const places = err
    .trimEnd()
    .split("\n")
    .map((line) => /:(\d+): (\S+): /.exec(line)?.slice(1).join(" "))
  expect(places).toEqual([
    "2 upstreams[0].api_key",
    "3 upstreams[1].vendor",
    "3 upstreams[1].name",
    "5 models[0].price.inptu",
    "5 models[0].routes[0].weight",
    "7 accounts[0].keys[0].key",
    "7 accounts[0].balance",
    "8 timeouts.silence",
  ])
})

test("a file that is not there", async () => {
  const file = join(bench.folder, "nowhere.yaml")
  const outcomes = await Promise.all([
    bench.run(["apply", file, "--data", data]),
    bench.run(["serve", "--config", file, "--data", data]),
  ])
  for (const { code, out, err } of outcomes) {
    expect([code, out]).toEqual([2, ""])
    expect(err).toStartWith(`cannot read the config file ${file}: ENOENT`)
  }
})

test("a folder in the place of the file", async () => {
  const { code, err } = await bench.run(["apply", bench.folder, "--data", data])
  expect(code).toBe(2)
  expect(err).toStartWith(`cannot read the config file ${bench.folder}: EISDIR`)
})

test("JSON is a config file too", async () => {
  const document = { plans: [{ name: "from-json", concurrency: 3 }] }
  const own = bench.freshData()
  const applied = await bench.run(["apply", bench.file("plan.json", JSON.stringify(document)), "--data", own])
  expect(applied).toEqual({ code: 0, out: "created plan from-json\n1 changed, 0 unchanged\n", err: "" })
})

test("a port that is taken: told with the address, and the config file that came with it is not applied", async () => {
  const owner = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } })
  const file = bench.file("port.yaml", extraPlan)
  const args = ["serve", "--port", String(owner.port), "--config", file, "--data", data]
  const { code, out, err } = await bench.run(args, { TOLLGATE_LOG: "silent" })
  owner.stop(true)
  expect([code, out]).toEqual([2, ""])
  expect(err).toStartWith(`cannot listen on 127.0.0.1:${owner.port}: `)
  expect(err.trimEnd().split("\n")).toHaveLength(1)
})

test("a master key that is not the one the credentials were sealed with", async () => {
  const args = ["serve", "--port", "0", "--data", data]
  const { code, out, err } = await bench.run(args, { TOLLGATE_MASTER_KEY: longMasterKey })
  expect([code, out]).toEqual([2, ""])
  expect(err).toContain('upstreams "main" api_key: cannot unseal upstream/main/0: the master key is not the one')
})

test("after all of these the database is as it was", async () => {
  expect((await bench.run(["export", "--data", data])).out).toBe(before)
})
