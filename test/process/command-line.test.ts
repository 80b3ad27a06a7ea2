import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test"
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { vendorNames } from "../../src/vendors/presets.ts"
import { version } from "../../src/version.ts"
import { tollgate, type Variables, workbench } from "../support/workbench.ts"

setDefaultTimeout(30_000)
const bench = workbench()
afterAll(() => bench.clear())

const commands = ["serve", "demo", "apply", "export", "doctor", "reconcile", "schema"]
const longMasterKey = "a master key of at least 32 characters"

describe("help", () => {
  test.each([["help"], ["--help"], ["-h"]])(
    "%s names every command and every variable, on standard output",
    async (word) => {
      const { code, out, err } = await bench.run([word])
      expect([code, err]).toEqual([0, ""])
      for (const command of commands) expect(out).toContain(`  tollgate ${command}`)
      for (const name of [
        "TOLLGATE_PORT",
        "TOLLGATE_HOST",
        "TOLLGATE_DATA",
        "DATABASE_URL",
        "REDIS_URL",
        "TOLLGATE_MASTER_KEY",
      ])
        expect(out).toContain(name)
    },
  )

  test("no command at all is answered with the help", async () => {
    const [bare, asked] = await Promise.all([bench.run([]), bench.run(["help"])])
    expect(bare).toEqual(asked)
  })

  test("version prints the version and nothing else", async () => {
    const outcomes = await Promise.all([bench.run(["version"]), bench.run(["--version"])])
    for (const outcome of outcomes) expect(outcome).toEqual({ code: 0, out: `${version}\n`, err: "" })
  })

  test("schema prints a JSON Schema that knows the sections and the vendors", async () => {
    const { code, out, err } = await bench.run(["schema"])
    expect([code, err]).toEqual([0, ""])
    const schema = JSON.parse(out) as { $schema: string; type: string; properties: Record<string, unknown> }
    expect(schema.$schema).toStartWith("https://json-schema.org/")
    expect(schema.type).toBe("object")
    expect(Object.keys(schema.properties)).toEqual(
      expect.arrayContaining(["upstreams", "models", "plans", "accounts", "people", "timeouts"]),
    )
    for (const vendor of vendorNames) expect(out).toContain(JSON.stringify(vendor))
  })
})

describe("a command line that cannot be understood: one message, exit code 2, nothing on standard output", () => {
  const cases: readonly [string, readonly string[], string][] = [
    [
      "a mistyped command",
      ["srve"],
      `"srve" is not a command (did you mean "serve"?); the commands are: ${commands.join(", ")}\n`,
    ],
    ["an unknown command", ["xyzzy"], `"xyzzy" is not a command; the commands are: ${commands.join(", ")}\n`],
    ["apply without a file", ["apply"], '"apply" takes one argument: the config file\n'],
    ["apply with two files", ["apply", "a", "b"], '"apply" takes one argument: the config file\n'],
    ["serve with an argument", ["serve", "now"], '"serve" takes no arguments\n'],
    [
      "a port that is no number",
      ["serve", "--port", "http"],
      '--port: must be a port number from 0 to 65535 (got "http")\n',
    ],
    [
      "a port that is too large",
      ["serve", "--port", "65536"],
      '--port: must be a port number from 0 to 65535 (got "65536")\n',
    ],
    ["a negative port", ["serve", "--port=-1"], '--port: must be a port number from 0 to 65535 (got "-1")\n'],
  ]
  test.each(cases)("%s", async (_, args, message) => {
    expect(await bench.run(args)).toEqual({ code: 2, out: "", err: message })
  })

  const flagCases: readonly [string, readonly string[], string, string][] = [
    ["an unknown flag", ["serve", "--prot", "1"], "--prot", '"serve" takes --config, --port, --host, --data\n'],
    ["a flag of another command", ["export", "--port", "1"], "--port", '"export" takes --data\n'],
    ["a flag where there are none", ["schema", "--data", "x"], "--data", '"schema" takes no flags\n'],
    ["a flag without its value", ["serve", "--port"], "--port", '"serve" takes --config, --port, --host, --data\n'],
  ]
  test.each(flagCases)("%s is named, with the flags that the command takes", async (_, args, flag, takes) => {
    const { code, out, err } = await bench.run(args)
    expect([code, out]).toEqual([2, ""])
    expect(err).toContain(flag)
    expect(err).toEndWith(takes)
  })
})

describe("settings that cannot be used: named, exit code 2, no data folder made", () => {
  const cases: readonly [string, Variables, string][] = [
    [
      "a database address that is none",
      { DATABASE_URL: "mysql://u:hunter2@host/db" },
      "DATABASE_URL: must be a postgres:// address, or unset for SQLite in the data folder\n",
    ],
    [
      "Postgres without a master key",
      { DATABASE_URL: "postgres://127.0.0.1:1/x" },
      "TOLLGATE_MASTER_KEY: required with Postgres, because every instance must seal and open credentials with the same key\n",
    ],
    [
      "a master key that is too short",
      { TOLLGATE_MASTER_KEY: "hunter2" },
      "TOLLGATE_MASTER_KEY: must have at least 32 characters\n",
    ],
    [
      "a port from the environment",
      { TOLLGATE_PORT: "eighty" },
      'TOLLGATE_PORT: must be a port number from 0 to 65535 (got "eighty")\n',
    ],
    [
      "an admin token that is too short",
      { TOLLGATE_ADMIN_TOKEN: "hunter2" },
      "TOLLGATE_ADMIN_TOKEN: must have at least 16 characters\n",
    ],
    [
      "a public address that is none",
      { TOLLGATE_PUBLIC_URL: "example.com" },
      "TOLLGATE_PUBLIC_URL: must be an address that begins with http:// or https://\n",
    ],
    [
      "a Redis address that is none",
      { REDIS_URL: "http://u:hunter2@host" },
      "REDIS_URL: must be an address that begins with redis:// or rediss://\n",
    ],
    [
      "a switch that is neither on nor off",
      { TOLLGATE_ALLOW_PRIVATE_ADDRESSES: "yes" },
      'TOLLGATE_ALLOW_PRIVATE_ADDRESSES: must be true or false (got "yes")\n',
    ],
    [
      "a log level that does not exist",
      { TOLLGATE_LOG: "loud" },
      'TOLLGATE_LOG: must be one of debug, info, warn, error, silent (got "loud")\n',
    ],
  ]
  test.each(cases)("%s", async (_, env, message) => {
    const data = bench.freshData()
    expect(await bench.run(["serve", "--data", data], env)).toEqual({ code: 2, out: "", err: message })
    expect(existsSync(data)).toBe(false)
  })

  test("several at once are all told, each in a line of its own", async () => {
    const env = { TOLLGATE_PORT: "x", DATABASE_URL: "junk", TOLLGATE_MASTER_KEY: "short" }
    const { code, err } = await bench.run(["serve"], env)
    expect(code).toBe(2)
    expect(
      err
        .trimEnd()
        .split("\n")
        .map((line) => line.split(":")[0]),
    ).toEqual(["DATABASE_URL", "TOLLGATE_MASTER_KEY", "TOLLGATE_PORT"])
  })

  test("a Postgres that is not there is told without its password", async () => {
    const env = { DATABASE_URL: "postgres://u:hunter2@127.0.0.1:1/x", TOLLGATE_MASTER_KEY: longMasterKey }
    const { code, out, err } = await bench.run(["export"], env)
    expect([code, out]).toEqual([1, ""])
    expect(err).toStartWith("cannot open the database 127.0.0.1:1/x: ")
    expect(err).not.toContain("hunter2")
  })
})

test("the data folder and what is in it can be read by their owner alone", async () => {
  const data = bench.freshData()
  await bench.run(["export", "--data", data])
  expect(statSync(data).mode & 0o777).toBe(0o700)
  const modes = readdirSync(data).map((name) => [name, (statSync(join(data, name)).mode & 0o777).toString(8)])
  expect(modes.length).toBeGreaterThan(1)
  for (const [name, mode] of modes) expect([name, mode]).toEqual([name!, "600"])
})

test("a flag beats the environment", async () => {
  const [fromFlag, fromEnvironment] = [bench.freshData(), bench.freshData()]
  const env = { TOLLGATE_PORT: "not a port", TOLLGATE_HOST: "256.256.256.256", TOLLGATE_DATA: fromEnvironment }
  const instance = await bench.start(["serve", "--port", "0", "--host", "127.0.0.1", "--data", fromFlag], env)
  expect(instance.url).toBe(`http://127.0.0.1:${instance.port}`)
  expect(existsSync(join(fromFlag, "tollgate.db"))).toBe(true)
  expect(existsSync(fromEnvironment)).toBe(false)
  instance.signal("SIGTERM")
  expect(await instance.ended).toBe(0)
})

test("without flags the environment counts", async () => {
  const data = bench.freshData()
  const instance = await bench.start(["serve"], { TOLLGATE_PORT: "0", TOLLGATE_HOST: "localhost", TOLLGATE_DATA: data })
  expect(instance.url).toBe(`http://localhost:${instance.port}`)
  expect((await fetch(`${instance.url}/health`)).status).toBe(200)
  expect(existsSync(join(data, "tollgate.db"))).toBe(true)
  instance.signal("SIGINT")
  expect(await instance.ended).toBe(0)
})

test("serve prints exactly one line that says where it listens", async () => {
  const instance = await bench.start(["serve", "--port", "0", "--data", bench.freshData()])
  const lines = instance
    .output()
    .split("\n")
    .filter((line) => line.includes("listening on http://"))
  expect(lines).toEqual([`tollgate is listening on ${instance.url}`])
  instance.signal("SIGTERM")
  expect(await instance.ended).toBe(0)
})

test("the command works through a link from another folder", async () => {
  mkdirSync(join(bench.folder, "bin"))
  Bun.spawnSync(["ln", "-s", tollgate[0]!, join(bench.folder, "bin", "tollgate")])
  expect(await bench.run(["version"], {}, ["bin/tollgate"])).toEqual({ code: 0, out: `${version}\n`, err: "" })
})
