import { describe, expect, test } from "bun:test"
import { join, resolve } from "node:path"
import { type Environment, type Flags, readSettings, SettingsError } from "./settings.ts"

const masterKey = "0123456789abcdef0123456789abcdef"

/** The problems of settings that cannot be used, one a line. */
function problemsOf(env: Environment, flags: Flags = {}): string[] {
  try {
    readSettings(flags, env)
  } catch (error) {
    if (error instanceof SettingsError) return error.message.split("\n")
    throw error
  }
  return []
}

test("nothing set: loopback, port 8080, SQLite in ./data", () => {
  expect(readSettings({}, {})).toEqual({
    host: "127.0.0.1",
    port: 8080,
    dataDir: resolve("data"),
    database: { kind: "sqlite", file: join(resolve("data"), "tollgate.db") },
    redisUrl: null,
    masterKey: null,
    adminToken: null,
    publicUrl: null,
    allowPrivateAddresses: false,
    billing: true,
    results: null,
    configFile: null,
    logLevel: "info",
  })
})

test("every variable is read", () => {
  const env = {
    TOLLGATE_HOST: "0.0.0.0",
    TOLLGATE_PORT: "9000",
    TOLLGATE_DATA: "/srv/tollgate",
    DATABASE_URL: "postgres://u:p@db/tollgate",
    REDIS_URL: "rediss://cache:6379",
    TOLLGATE_MASTER_KEY: masterKey,
    TOLLGATE_ADMIN_TOKEN: "0123456789abcdef",
    TOLLGATE_PUBLIC_URL: "https://gateway.example/base//",
    TOLLGATE_ALLOW_PRIVATE_ADDRESSES: "true",
    TOLLGATE_BILLING: "off",
    TOLLGATE_RESULTS: "/srv/films",
    TOLLGATE_LOG: "debug",
  }
  expect(readSettings({}, env)).toEqual({
    host: "0.0.0.0",
    port: 9000,
    dataDir: "/srv/tollgate",
    database: { kind: "postgres", url: "postgres://u:p@db/tollgate" },
    redisUrl: "rediss://cache:6379",
    masterKey,
    adminToken: "0123456789abcdef",
    publicUrl: "https://gateway.example/base",
    allowPrivateAddresses: true,
    billing: false,
    results: { kind: "folder", path: "/srv/films" },
    configFile: null,
    logLevel: "debug",
  })
})

test("an empty variable is an unset one", () => {
  const names = Object.keys({
    TOLLGATE_HOST: 0,
    TOLLGATE_PORT: 0,
    TOLLGATE_DATA: 0,
    DATABASE_URL: 0,
    REDIS_URL: 0,
    TOLLGATE_MASTER_KEY: 0,
    TOLLGATE_ADMIN_TOKEN: 0,
    TOLLGATE_PUBLIC_URL: 0,
    TOLLGATE_ALLOW_PRIVATE_ADDRESSES: 0,
    TOLLGATE_RESULTS: 0,
    TOLLGATE_LOG: 0,
  })
  expect(readSettings({}, Object.fromEntries(names.map((name) => [name, ""])))).toEqual(readSettings({}, {}))
})

test("a flag beats the environment", () => {
  const env = { TOLLGATE_HOST: "10.0.0.1", TOLLGATE_PORT: "1", TOLLGATE_DATA: "/env" }
  const settings = readSettings({ host: "::1", port: "2", data: "/flag", config: "house.yaml" }, env)
  expect(settings).toMatchObject({ host: "::1", port: 2, dataDir: "/flag", configFile: "house.yaml" })
  expect(settings.database).toEqual({ kind: "sqlite", file: "/flag/tollgate.db" })
})

test("a good flag beats a variable that could not be used", () => {
  expect(readSettings({ port: "2" }, { TOLLGATE_PORT: "nonsense" }).port).toBe(2)
})

describe("ports", () => {
  test.each(["0", "1", "65535"])("%s is one", (port) => {
    expect(readSettings({ port }, {}).port).toBe(Number(port))
  })

  test.each(["65536", "-1", "8080x", "1e3", "80.5", " 80", "0x50"])("%p is none, whoever says it", (port) => {
    const rule = `must be a port number from 0 to 65535 (got "${port}")`
    expect(problemsOf({}, { port })).toEqual([`--port: ${rule}`])
    expect(problemsOf({ TOLLGATE_PORT: port })).toEqual([`TOLLGATE_PORT: ${rule}`])
  })

  test("an empty flag is no port", () => {
    expect(problemsOf({}, { port: "" })).toHaveLength(1)
  })
})

describe("variables that cannot be used", () => {
  test.each([
    ["DATABASE_URL", "mysql://u:p@db/x", "must be a postgres:// address, or unset for SQLite in the data folder"],
    ["DATABASE_URL", "postgres:db", "must be a postgres:// address, or unset for SQLite in the data folder"],
    ["REDIS_URL", "http://cache", "must be an address that begins with redis:// or rediss://"],
    ["REDIS_URL", "redis:cache", "must be an address that begins with redis:// or rediss://"],
    ["REDIS_URL", "cache:6379", "must be an address that begins with redis:// or rediss://"],
    ["TOLLGATE_PUBLIC_URL", "gateway.example", "must be an address that begins with http:// or https://"],
    ["TOLLGATE_PUBLIC_URL", "https:gateway.example", "must be an address that begins with http:// or https://"],
    ["TOLLGATE_PUBLIC_URL", "ftp://gateway.example", "must be an address that begins with http:// or https://"],
    ["TOLLGATE_MASTER_KEY", "x".repeat(31), "must have at least 32 characters"],
    ["TOLLGATE_ADMIN_TOKEN", "x".repeat(15), "must have at least 16 characters"],
    ["TOLLGATE_ALLOW_PRIVATE_ADDRESSES", "yes", 'must be true or false (got "yes")'],
    ["TOLLGATE_LOG", "loud", 'must be one of debug, info, warn, error, silent (got "loud")'],
  ])("%s=%s", (name, value, rule) => {
    expect(problemsOf({ [name]: value })).toEqual([`${name}: ${rule}`])
  })

  test("Postgres needs a master key that every instance has", () => {
    expect(problemsOf({ DATABASE_URL: "postgresql://db/x" })).toEqual([
      "TOLLGATE_MASTER_KEY: required with Postgres, because every instance must seal and open credentials with the same key",
    ])
    expect(problemsOf({ DATABASE_URL: "postgresql://db/x", TOLLGATE_MASTER_KEY: masterKey })).toEqual([])
  })

  test("an address is one in any case", () => {
    expect(readSettings({}, { TOLLGATE_PUBLIC_URL: "HTTPS://gateway.example" }).publicUrl).toBe(
      "HTTPS://gateway.example",
    )
  })

  test("all problems are told at once", () => {
    const names = problemsOf(
      {
        DATABASE_URL: "x",
        REDIS_URL: "x",
        TOLLGATE_MASTER_KEY: "x",
        TOLLGATE_ADMIN_TOKEN: "x",
        TOLLGATE_PUBLIC_URL: "x",
        TOLLGATE_ALLOW_PRIVATE_ADDRESSES: "x",
        TOLLGATE_LOG: "x",
      },
      { port: "x" },
    ).map((problem) => problem.split(":")[0]!)
    expect(names.toSorted()).toEqual([
      "--port",
      "DATABASE_URL",
      "REDIS_URL",
      "TOLLGATE_ADMIN_TOKEN",
      "TOLLGATE_ALLOW_PRIVATE_ADDRESSES",
      "TOLLGATE_LOG",
      "TOLLGATE_MASTER_KEY",
      "TOLLGATE_PUBLIC_URL",
    ])
  })

  test("secrets are never repeated", () => {
    const problems = problemsOf({
      DATABASE_URL: "mysql://user:hidden-1@db/x",
      REDIS_URL: "http://user:hidden-2@cache",
      TOLLGATE_PUBLIC_URL: "ftp://user:hidden-3@host",
      TOLLGATE_MASTER_KEY: "hidden-4",
      TOLLGATE_ADMIN_TOKEN: "hidden-5",
    })
    expect(problems).toHaveLength(5)
    expect(problems.join()).not.toContain("hidden")
  })
})

describe("where copies of results are kept", () => {
  const keys = { AWS_ACCESS_KEY_ID: "AK", AWS_SECRET_ACCESS_KEY: "SK" }
  const bucketOf = (env: Environment) => readSettings({}, env).results

  test("a path is a folder, from where the process runs", () => {
    expect(bucketOf({ TOLLGATE_RESULTS: "films" })).toEqual({ kind: "folder", path: resolve("films") })
    expect(bucketOf({ TOLLGATE_RESULTS: "./s3/films" })).toEqual({ kind: "folder", path: resolve("s3/films") })
  })

  test("s3:// is a bucket of Amazon's, with what other programs read for it", () => {
    const env = { ...keys, TOLLGATE_RESULTS: "s3://films.example", AWS_REGION: "eu-west-1", AWS_SESSION_TOKEN: "lent" }
    expect(bucketOf(env)).toEqual({
      kind: "bucket",
      bucket: "films.example",
      prefix: "",
      endpoint: "https://s3.eu-west-1.amazonaws.com",
      region: "eu-west-1",
      accessKeyId: "AK",
      secretAccessKey: "SK",
      sessionToken: "lent",
    })
  })

  test("an endpoint is another service, whose region may be left out; a prefix ends with one slash", () => {
    const env = { ...keys, TOLLGATE_RESULTS: "s3://films/a/b//", AWS_ENDPOINT_URL: "http://10.0.0.7:9000/" }
    expect(bucketOf(env)).toEqual({
      kind: "bucket",
      bucket: "films",
      prefix: "a/b/",
      endpoint: "http://10.0.0.7:9000",
      region: "us-east-1",
      accessKeyId: "AK",
      secretAccessKey: "SK",
      sessionToken: null,
    })
  })

  test("what a bucket needs is named, all at once", () => {
    const rule = "required with a bucket in TOLLGATE_RESULTS"
    expect(problemsOf({ TOLLGATE_RESULTS: "s3://films" })).toEqual([
      `AWS_ACCESS_KEY_ID: ${rule}`,
      `AWS_SECRET_ACCESS_KEY: ${rule}`,
      `AWS_REGION: ${rule}`,
    ])
    const elsewhere = { ...keys, TOLLGATE_RESULTS: "s3://films", AWS_ENDPOINT_URL: "minio:9000" }
    expect(problemsOf(elsewhere)).toEqual(["AWS_ENDPOINT_URL: must be an address that begins with http:// or https://"])
  })

  test.each(["https://films.example/x", "gs://films", "file:///films"])("%s is neither", (value) => {
    expect(problemsOf({ ...keys, TOLLGATE_RESULTS: value })).toEqual([
      "TOLLGATE_RESULTS: must be the path of a folder, or s3://bucket/prefix",
    ])
  })

  test.each(["s3://", "s3:films", "s3://a", "s3://user:word@films", "s3://films:9000/x"])(
    "%s is no bucket",
    (value) => {
      expect(problemsOf({ ...keys, AWS_REGION: "x", TOLLGATE_RESULTS: value })).toEqual([
        "TOLLGATE_RESULTS: must be s3://bucket or s3://bucket/prefix",
      ])
    },
  )

  test("without a bucket nothing of Amazon's is looked at", () => {
    expect(problemsOf({ AWS_ENDPOINT_URL: "nonsense", TOLLGATE_RESULTS: "films" })).toEqual([])
  })
})
