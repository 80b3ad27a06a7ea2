import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { slowStart } from "../store/engines.ts"
import { startPostgres } from "../support/postgres.ts"
import { type Outcome, type Variables, workbench } from "../support/workbench.ts"

setDefaultTimeout(30_000)
const bench = workbench()
afterAll(() => bench.clear())

const engines = ["sqlite", "postgres"] as const
type Engine = (typeof engines)[number]

const exampleText = readFileSync(join(import.meta.dir, "..", "..", "src", "config", "example.yaml"), "utf8")
/** The upstreams that the example names and, being an example, does not show. */
const others = `  - { name: azure-east, vendor: azure-openai, base_url: https://east.example.com/openai/v1, api_keys: ["\${AZURE_1}", "\${AZURE_2}"] }
  - { name: bfl, vendor: bfl, api_key: "\${BFL_KEY}", headers: { x-team: "50% $\${literal}" }, timeouts: { first_token: 90s }, concurrency: 7 }
  - { name: kling, vendor: kling, api_key: "\${KLING_KEY}" }
`
const wholeText = exampleText.replace("models:\n", () => `${others}models:\n`)
const exampleSecrets = {
  OPENAI_API_KEY: "sk-openai-secret",
  ACME_KEY: "sk-acme-secret-0123456789",
  ADMIN_PASSWORD: "correct horse battery staple",
}
const otherSecrets = {
  AZURE_1: "azure-secret-1",
  AZURE_2: "azure-secret-2",
  BFL_KEY: "bfl-secret",
  KLING_KEY: "kling-s",
}
const secrets: Variables = { ...exampleSecrets, ...otherSecrets }

/** The names under which an export asks for the same secrets. */
const placeholders: Variables = {
  AZURE_EAST_API_KEY: secrets.AZURE_1!,
  AZURE_EAST_API_KEY_2: secrets.AZURE_2!,
  BFL_API_KEY: secrets.BFL_KEY!,
  KLING_API_KEY: secrets.KLING_KEY!,
  OPENAI_MAIN_API_KEY: secrets.OPENAI_API_KEY!,
  ACME_CI_KEY: secrets.ACME_KEY!,
  ROOT_EXAMPLE_COM_PASSWORD: secrets.ADMIN_PASSWORD!,
}

/** One empty database and the commands on it. */
interface Installation {
  apply(text: string, env?: Variables, ...flags: string[]): Promise<Outcome>
  exported(): Promise<string>
}

let made = 0
async function install(engine: Engine): Promise<Installation> {
  const number = ++made
  const data = join(bench.folder, `data-${number}`)
  const database: Variables =
    engine === "sqlite"
      ? {}
      : {
          DATABASE_URL: await (await startPostgres()).freshDatabase(),
          TOLLGATE_MASTER_KEY: "a master key of at least 32 characters",
        }
  return {
    apply: (text, env = {}, ...flags) =>
      bench.run(["apply", bench.file(`${number}.yaml`, text), "--data", data, ...flags], { ...database, ...env }),
    async exported() {
      const { code, out, err } = await bench.run(["export", "--data", data], database)
      expect([code, err]).toEqual([0, ""])
      return out
    },
  }
}

const placeholder = (name: string): string => `\${${name}}`

function lastLine({ out }: Outcome): string | undefined {
  return out.trimEnd().split("\n").at(-1)
}

test("the published example names three upstreams that it does not have, and apply says which, with their lines", async () => {
  const installation = await install("sqlite")
  const { code, out, err } = await installation.apply(exampleText, exampleSecrets)
  expect([code, out]).toEqual([2, ""])
  const said = err
    .trimEnd()
    .split("\n")
    .map((line) => line.replace(/^.*?\.yaml:/, ""))
  const lineOf = (text: string): number => exampleText.split("\n").findIndex((line) => line.includes(text)) + 1
  expect(said).toEqual([
    `${lineOf("upstream: azure-east")}: models[0].routes[1].upstream: "azure-east" is not an upstream`,
    `${lineOf("upstream: bfl")}: models[1].routes[0].upstream: "bfl" is not an upstream`,
    `${lineOf("upstream: kling")}: models[2].routes[0].upstream: "kling" is not an upstream`,
  ])
})

describe.each([...engines])("on %s", (engine) => {
  let installation: Installation
  beforeAll(async () => {
    installation = await install(engine)
  }, slowStart)

  test("the example is applied as a whole; applied again it changes nothing, and no second opening balance is posted", async () => {
    const first = await installation.apply(wholeText, secrets)
    expect(first).toMatchObject({ code: 0, err: "" })
    expect(first.out.trimEnd().split("\n")).toEqual([
      "created plan default",
      "created upstream openai-main",
      "created upstream azure-east",
      "created upstream bfl",
      "created upstream kling",
      "created model gpt-5",
      "created model flux-image",
      "created model kling-video",
      "created model tts",
      "created account acme",
      "created key ci of account acme",
      "created person root@example.com",
      "created timeouts",
      "13 changed, 0 unchanged",
    ])
    const second = await installation.apply(wholeText.replace("balance: 100", "balance: 500"), secrets)
    expect(second).toEqual({ code: 0, out: "0 changed, 13 unchanged\n", err: "" })
  })

  test("the export holds no secret, and applied elsewhere with its variables set it gives the same export", async () => {
    const exported = await installation.exported()
    expect(exported).toContain("balance: 100\n")
    for (const secret of Object.values(secrets)) expect(exported).not.toContain(secret)
    for (const name of Object.keys(placeholders)) expect(exported).toContain(placeholder(name))

    const elsewhere = await install(engine)
    const applied = await elsewhere.apply(exported, placeholders)
    expect(applied).toMatchObject({ code: 0, err: "" })
    expect(lastLine(applied)).toBe("13 changed, 0 unchanged")
    expect(await elsewhere.exported()).toBe(exported)
    // The secrets themselves arrived too: the first file finds nothing to change.
    expect(lastLine(await elsewhere.apply(wholeText, secrets))).toBe("0 changed, 13 unchanged")
  })

  test("the export says what the file said", async () => {
    const document = Bun.YAML.parse(await installation.exported()) as Record<string, unknown[]>
    expect(document).toMatchObject({
      upstreams: [
        { name: "azure-east", api_keys: ["AZURE_EAST_API_KEY", "AZURE_EAST_API_KEY_2"].map(placeholder) },
        { name: "bfl", headers: { "x-team": "50% $${literal}" }, timeouts: { first_token: "90s" }, concurrency: 7 },
        { name: "kling" },
        { name: "openai-main", base_url: "https://api.openai.com/v1" },
      ],
      plans: [{ name: "default", concurrency: 50 }],
      accounts: [{ name: "acme", plan: "default", concurrency: 10, balance: 100 }],
      people: [{ email: "root@example.com", role: "admin", account: "acme" }],
      timeouts: { non_stream: "2m", first_token: "1m", silence: "2m", total: "30m", drain: "2m" },
    })
    const model = (name: string) => document.models?.find((entry) => (entry as { name: string }).name === name)
    expect(model("gpt-5")).toEqual({
      name: "gpt-5",
      price: { input: 1.25, cached_input: 0.125, cache_write: 1.25, output: 10 },
      routes: [
        { upstream: "openai-main", model: "gpt-5-2026-08" },
        { upstream: "azure-east", model: "gpt5-deploy", priority: 2 },
      ],
    })
    expect(model("tts")).toMatchObject({ price: { character: 0.000015 } })
  })

  test("a change is named and counted, and the rest is left alone", async () => {
    const changed = wholeText.replace("output: 10 }", "output: 12 }").replace("concurrency: 50", "concurrency: 60")
    const { code, out } = await installation.apply(changed, { ...secrets, ACME_KEY: "sk-acme-rotated-0123456789" })
    expect(code).toBe(0)
    expect(out).toBe(
      "updated plan default\nupdated model gpt-5\nupdated key ci of account acme\n3 changed, 10 unchanged\n",
    )
    expect(lastLine(await installation.apply(wholeText, secrets))).toBe("3 changed, 10 unchanged")
  })

  test("what a file leaves out stays without --prune, and goes with it; money keeps its account, suspended", async () => {
    const extra = `upstreams: [{ name: spare, vendor: ollama }]
models: [{ name: spare-model, price: free, routes: [{ upstream: spare }] }]
plans: [{ name: silver, concurrency: 5 }]
accounts:
  - { name: paid, plan: silver, balance: 1, keys: [{ name: k, key: sk-paid-0123456789 }] }
  - { name: unpaid, plan: silver, keys: [{ name: k, key: sk-unpaid-0123456789 }] }
people: [{ email: spare@example.com, password: spare password, role: member, account: unpaid }]
`
    expect(await installation.apply(extra)).toMatchObject({ code: 0, err: "" })
    expect(lastLine(await installation.apply(wholeText, secrets))).toBe("0 changed, 13 unchanged")
    expect(await installation.exported()).toContain("spare-model")

    const pruned = await installation.apply(wholeText, secrets, "--prune")
    expect(pruned).toMatchObject({ code: 0, err: "" })
    expect(pruned.out.trimEnd().split("\n")).toEqual([
      "deleted person spare@example.com",
      "deleted key k of account paid",
      "deleted key k of account unpaid",
      'suspended account paid: account "paid" has lines in the ledger, which is kept; suspend the account instead',
      "deleted account unpaid",
      "deleted model spare-model",
      "deleted upstream spare",
      "7 changed, 13 unchanged",
    ])
    const left = await installation.exported()
    for (const gone of ["spare", "unpaid"]) expect(left).not.toContain(gone)
    // The suspended account and the plan it is on are its history.
    for (const kept of ["name: paid", "name: silver", "balance: 1\n"]) expect(left).toContain(kept)
    expect(lastLine(await installation.apply(wholeText, secrets, "--prune"))).toBe("0 changed, 13 unchanged")
  })

  test("--prune leaves alone the sections that the file does not have", async () => {
    const before = await installation.exported()
    const applied = await installation.apply(
      "plans: [{ name: default, concurrency: 50 }, { name: silver, concurrency: 5 }]",
      {},
      "--prune",
    )
    expect(applied).toEqual({ code: 0, out: "0 changed, 2 unchanged\n", err: "" })
    expect(await installation.exported()).toBe(before)
  })

  test("tiers, a tokenizer and the retention of requests come back as they were written, and change by name", async () => {
    const priced = `upstreams:
  - name: local
    vendor: ollama
models:
  - name: tiered
    price:
      input: 1.25
      output: 10
      tiers:
        - { above_input: 200000, input: 2.5, output: 15 }
        - { size: 1024x1536, quality: high, image: 0.25 }
    tokenizer: cl100k_base
    routes:
      - { upstream: local }
plans: []
accounts: []
people: []
retention: { requests: 30d }
`
    const other = await install(engine)
    expect(lastLine(await other.apply(priced))).toBe("3 changed, 0 unchanged")
    expect(await other.exported()).toBe(priced)
    const changed = priced.replace("30d", "forever").replace("input: 2.5", "input: 3").replace("cl100k", "o200k")
    expect((await other.apply(changed)).out).toBe("updated model tiered\nupdated retention\n2 changed, 1 unchanged\n")
    expect(await other.exported()).toBe(changed)
  })

  test("--prune that would take away what is still used is refused by name, and nothing is changed", async () => {
    const before = await installation.exported()
    const { code, out, err } = await installation.apply("upstreams: []\nplans: [{ name: late }]", {}, "--prune")
    expect([code, out]).toEqual([2, ""])
    expect(err).toContain('upstream "azure-east"')
    expect(err).toContain("gpt-5")
    expect(await installation.exported()).toBe(before)
  })
})
