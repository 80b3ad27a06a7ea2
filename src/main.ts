import { parseArgs } from "node:util"
import { apply } from "./cli/apply.ts"
import { doctor } from "./cli/doctor.ts"
import { exportDatabase } from "./cli/export.ts"
import { ensureFetchLimit } from "./cli/fetch-limit.ts"
import { reconcileDatabase } from "./cli/reconcile.ts"
import { serve } from "./cli/serve.ts"
import { UsageError } from "./cli/usage-error.ts"
import { ConfigError } from "./config/problems.ts"
import { configJsonSchema } from "./config/schema.ts"
import { suggest } from "./lib/suggest.ts"
import { readSettings, type Settings, SettingsError } from "./settings.ts"
import { StoreConflict, StoreLockedError } from "./store/errors.ts"
import { version } from "./version.ts"

const help = `tollgate ${version}: a model gateway

  tollgate serve [--config FILE] [--port N] [--host H] [--data DIR]   run the gateway
  tollgate demo [--port N]                                            run it with simulated vendors and throwaway data
  tollgate apply FILE [--prune] [--data DIR]                          write a config file into the database
  tollgate export [--data DIR]                                        print the database as a config file
  tollgate doctor [--data DIR]                                        check settings, database, Redis and upstreams
  tollgate reconcile [--data DIR]                                     add up balances and usage again; exit code 1 on a difference
  tollgate schema                                                     print the JSON Schema of the config file

Environment: TOLLGATE_PORT, TOLLGATE_HOST, TOLLGATE_DATA, DATABASE_URL, REDIS_URL, TOLLGATE_MASTER_KEY,
TOLLGATE_ADMIN_TOKEN, TOLLGATE_PUBLIC_URL, TOLLGATE_ALLOW_PRIVATE_ADDRESSES, TOLLGATE_BILLING, TOLLGATE_RESULTS,
TOLLGATE_LOG. A flag beats the environment.`

const flags = {
  config: { type: "string" },
  port: { type: "string" },
  host: { type: "string" },
  data: { type: "string" },
  prune: { type: "boolean" },
} as const

type Flag = keyof typeof flags

/** The commands with the flags and the number of arguments each of them takes. */
const commands: Readonly<Record<string, { readonly flags: readonly Flag[]; readonly args: number }>> = {
  serve: { flags: ["config", "port", "host", "data"], args: 0 },
  demo: { flags: ["port"], args: 0 },
  apply: { flags: ["data", "prune"], args: 1 },
  export: { flags: ["data"], args: 0 },
  doctor: { flags: ["data"], args: 0 },
  reconcile: { flags: ["data"], args: 0 },
  schema: { flags: [], args: 0 },
}

async function main(argv: readonly string[]): Promise<void> {
  const [name, ...rest] = argv
  if (name === undefined || name === "help" || name === "--help" || name === "-h") return console.log(help)
  if (name === "version" || name === "--version") return console.log(version)
  const { values, positionals } = readCommand(name, rest)
  if (name === "schema") return console.log(JSON.stringify(configJsonSchema(), null, 2))
  const settings = readSettings(values, process.env)
  if (name === "serve" || name === "demo") ensureFetchLimit(process.env)
  if (name === "serve") return serve(settings, process.env)
  if (name === "demo") return runDemo(settings)
  if (name === "apply") return apply(positionals[0]!, values.prune ?? false, settings, process.env)
  if (name === "export") return exportDatabase(settings)
  if (name === "reconcile") return reconcileDatabase(settings)
  return doctor(settings)
}

/** Loaded only here, because a gateway that serves has no use for the simulated vendors. */
async function runDemo(settings: Settings): Promise<void> {
  const { demo } = await import("./cli/demo.ts")
  await demo(settings)
}

function readCommand(name: string, rest: readonly string[]) {
  const command = commands[name]
  if (command === undefined) {
    const close = suggest(name, Object.keys(commands))
    const hint = close === null ? "" : ` (did you mean "${close}"?)`
    throw new UsageError(`"${name}" is not a command${hint}; the commands are: ${Object.keys(commands).join(", ")}`)
  }
  const allowed = Object.fromEntries(command.flags.map((flag) => [flag, flags[flag]]))
  try {
    const { values, positionals } = parseArgs({
      args: [...rest],
      options: allowed as typeof flags,
      allowPositionals: true,
    })
    if (positionals.length !== command.args) throw new UsageError(argumentsProblem(name, command.args))
    return { values, positionals }
  } catch (error) {
    if (error instanceof UsageError) throw error
    const known = command.flags.map((flag) => `--${flag}`).join(", ")
    throw new UsageError(
      `${error instanceof Error ? error.message : String(error)}; "${name}" takes ${known || "no flags"}`,
    )
  }
}

function argumentsProblem(name: string, wanted: number): string {
  return wanted === 0 ? `"${name}" takes no arguments` : `"${name}" takes one argument: the config file`
}

/** Exit code 2: the person asked for something that cannot be; the message says what. Anything else is exit code 1. */
function isForThePerson(error: unknown): error is Error {
  const kinds = [UsageError, SettingsError, ConfigError, StoreConflict, StoreLockedError]
  return kinds.some((kind) => error instanceof kind)
}

main(Bun.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error))
  process.exit(isForThePerson(error) ? 2 : 1)
})
