import { join, resolve } from "node:path"
import type { BucketTarget, ResultsTarget } from "./core/results-target.ts"
import type { LogLevel } from "./log.ts"
import type { DatabaseTarget } from "./store/db.ts"

/** How this process runs, from flags and environment; what it serves is in the database. */
export interface Settings {
  readonly host: string
  readonly port: number
  readonly dataDir: string
  readonly database: DatabaseTarget
  readonly redisUrl: string | null
  /** Null: the one kept in the data folder. */
  readonly masterKey: string | null
  readonly adminToken: string | null
  readonly publicUrl: string | null
  readonly allowPrivateAddresses: boolean
  /** False: nothing is checked, charged or put on record. */
  readonly billing: boolean
  /** Where copies of finished videos are kept; null: nowhere. */
  readonly results: ResultsTarget | null
  readonly configFile: string | null
  readonly logLevel: LogLevel
}

export interface Flags {
  readonly host?: string
  readonly port?: string
  readonly data?: string
  readonly config?: string
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Settings that cannot be used; every problem names the flag or variable and what is allowed. */
export class SettingsError extends Error {
  constructor(problems: readonly string[]) {
    super(problems.join("\n"))
    this.name = "SettingsError"
  }
}

const logLevels: readonly LogLevel[] = ["debug", "info", "warn", "error", "silent"]

/** The only reader of the environment. A flag beats it. */
export function readSettings(flags: Flags, env: Environment): Settings {
  const problems: string[] = []
  const refuse = (problem: string): void => {
    problems.push(problem)
  }
  const dataDir = resolve(flags.data ?? nonEmpty(env.TOLLGATE_DATA) ?? "data")
  const database = readDatabase(nonEmpty(env.DATABASE_URL), dataDir, refuse)
  const masterKey = nonEmpty(env.TOLLGATE_MASTER_KEY)
  if (database.kind === "postgres" && masterKey === null) {
    refuse(
      "TOLLGATE_MASTER_KEY: required with Postgres, because every instance must seal and open credentials with the same key",
    )
  }
  if (masterKey !== null && masterKey.length < 32) refuse("TOLLGATE_MASTER_KEY: must have at least 32 characters")
  const settings: Settings = {
    host: flags.host ?? nonEmpty(env.TOLLGATE_HOST) ?? "127.0.0.1",
    port: readPort(
      flags.port === undefined ? "TOLLGATE_PORT" : "--port",
      flags.port ?? nonEmpty(env.TOLLGATE_PORT) ?? "8080",
      refuse,
    ),
    dataDir,
    database,
    redisUrl: readUrl("REDIS_URL", nonEmpty(env.REDIS_URL), ["redis:", "rediss:"], refuse),
    masterKey,
    adminToken: readAdminToken(nonEmpty(env.TOLLGATE_ADMIN_TOKEN), refuse),
    publicUrl: readUrl("TOLLGATE_PUBLIC_URL", nonEmpty(env.TOLLGATE_PUBLIC_URL), ["http:", "https:"], refuse),
    allowPrivateAddresses: readFlag(
      "TOLLGATE_ALLOW_PRIVATE_ADDRESSES",
      nonEmpty(env.TOLLGATE_ALLOW_PRIVATE_ADDRESSES),
      refuse,
    ),
    billing: readSwitch("TOLLGATE_BILLING", nonEmpty(env.TOLLGATE_BILLING), refuse),
    results: readResults(nonEmpty(env.TOLLGATE_RESULTS), env, refuse),
    configFile: flags.config ?? null,
    logLevel: readLogLevel(nonEmpty(env.TOLLGATE_LOG) ?? "info", refuse),
  }
  if (problems.length > 0) throw new SettingsError(problems)
  return settings
}

type Refuse = (problem: string) => void

function nonEmpty(value: string | undefined): string | null {
  return value === undefined || value === "" ? null : value
}

function readPort(name: string, value: string, refuse: Refuse): number {
  const port = Number(value)
  if (/^\d+$/.test(value) && port <= 65535) return port
  refuse(`${name}: must be a port number from 0 to 65535 (got "${value}")`)
  return 0
}

function readDatabase(url: string | null, dataDir: string, refuse: Refuse): DatabaseTarget {
  if (url === null) return { kind: "sqlite", file: join(dataDir, "tollgate.db") }
  if (/^postgres(ql)?:\/\//.test(url) && URL.canParse(url)) return { kind: "postgres", url }
  refuse("DATABASE_URL: must be a postgres:// address, or unset for SQLite in the data folder")
  return { kind: "sqlite", file: "" }
}

/** An address of one of the given schemes; the value is never repeated, because it may hold a password. */
function readUrl(name: string, value: string | null, schemes: readonly string[], refuse: Refuse): string | null {
  if (value === null) return null
  const begins = schemes.some((scheme) => value.toLowerCase().startsWith(`${scheme}//`))
  if (begins && URL.canParse(value)) return value.replace(/\/+$/, "")
  refuse(`${name}: must be an address that begins with ${schemes.map((scheme) => `${scheme}//`).join(" or ")}`)
  return null
}

function readResults(value: string | null, env: Environment, refuse: Refuse): ResultsTarget | null {
  if (value === null) return null
  if (/^s3:/i.test(value)) return readBucket(value, env, refuse)
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(value)) return { kind: "folder", path: resolve(value) }
  refuse("TOLLGATE_RESULTS: must be the path of a folder, or s3://bucket/prefix")
  return null
}

/** The names of the variables are those that other programs read for Amazon's protocol. */
function readBucket(value: string, env: Environment, refuse: Refuse): BucketTarget | null {
  const [, bucket, path = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/i.exec(value) ?? []
  if (bucket === undefined) refuse("TOLLGATE_RESULTS: must be s3://bucket or s3://bucket/prefix")
  const endpoint = readUrl("AWS_ENDPOINT_URL", nonEmpty(env.AWS_ENDPOINT_URL), ["http:", "https:"], refuse)
  const needed = (name: string): string => {
    const found = nonEmpty(env[name])
    if (found === null) refuse(`${name}: required with a bucket in TOLLGATE_RESULTS`)
    return found ?? ""
  }
  const accessKeyId = needed("AWS_ACCESS_KEY_ID")
  const secretAccessKey = needed("AWS_SECRET_ACCESS_KEY")
  // Services other than Amazon's have one region mostly, and take this name for it.
  const region = nonEmpty(env.AWS_REGION) ?? (nonEmpty(env.AWS_ENDPOINT_URL) ? "us-east-1" : needed("AWS_REGION"))
  if (bucket === undefined) return null
  const prefix = path.replace(/^\/+|\/+$/g, "")
  return {
    kind: "bucket",
    bucket,
    prefix: prefix === "" ? "" : `${prefix}/`,
    endpoint: endpoint ?? `https://s3.${region}.amazonaws.com`,
    region,
    accessKeyId,
    secretAccessKey,
    sessionToken: nonEmpty(env.AWS_SESSION_TOKEN),
  }
}

function readAdminToken(value: string | null, refuse: Refuse): string | null {
  if (value !== null && value.length < 16) refuse("TOLLGATE_ADMIN_TOKEN: must have at least 16 characters")
  return value
}

function readFlag(name: string, value: string | null, refuse: Refuse): boolean {
  if (value !== null && value !== "true" && value !== "false") refuse(`${name}: must be true or false (got "${value}")`)
  return value === "true"
}

function readSwitch(name: string, value: string | null, refuse: Refuse): boolean {
  if (value !== null && value !== "on" && value !== "off") refuse(`${name}: must be on or off (got "${value}")`)
  return value !== "off"
}

function readLogLevel(value: string, refuse: Refuse): LogLevel {
  const level = logLevels.find((known) => known === value)
  if (level === undefined) refuse(`TOLLGATE_LOG: must be one of ${logLevels.join(", ")} (got "${value}")`)
  return level ?? "info"
}
