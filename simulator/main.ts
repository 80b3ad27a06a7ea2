import { parseArgs } from "node:util"
import { startSimulator } from "./simulator.ts"

const usage = "usage: bun simulator/main.ts [--port N] [--host H]"

function fail(message: string): never {
  console.error(`${message}\n${usage}`)
  process.exit(2)
}

function readFlags(): { port: number; host: string } {
  try {
    const { values } = parseArgs({
      options: { port: { type: "string", default: "0" }, host: { type: "string", default: "127.0.0.1" } },
    })
    const port = Number(values.port)
    if (!/^\d+$/.test(values.port) || port > 65_535) fail(`--port ${values.port} is not a port number`)
    return { port, host: values.host }
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error))
  }
}

const flags = readFlags()
const simulator = await startSimulator(flags).catch((error: unknown) =>
  fail(`cannot listen on ${flags.host}:${flags.port}: ${error instanceof Error ? error.message : String(error)}`),
)
console.log(`simulator listening on ${simulator.url}`)
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void simulator.stop().then(() => process.exit(0)))
}
