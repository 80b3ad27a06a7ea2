import { join } from "node:path"
import { launchPostgres, type PostgresServer } from "../test/support/postgres.ts"
import { cpuMicrosEver } from "./cpu.ts"
import { type Effort, measureAnswers } from "./measure.ts"
import type { Running } from "./processes.ts"
import { judgeCharged, median, type Verdict } from "./table.ts"
import { PRODUCT_PATH, type Scene, startTollgate } from "./targets.ts"

/** What `--only` calls this part. */
export const CHARGES = "charges"

const MASTER_KEY = "bench-master-key-0123456789abcdef0123456789"
const PRICE = { input: 1.25, output: 10 }
const ENGINES = ["sqlite", "postgres"] as const
type Engine = (typeof ENGINES)[number]

/** A comparison of two close numbers takes more rounds than one of a number with a floor far below it. */
const ROUNDS_FOR_EACH = 2

/**
 * Enough callers to keep all three busy. With few of them the charged ones wait for the disk, and a gateway that waits wakes
 * up more often for each request, which is the cost of waiting and not of charging.
 */
const CONNECTIONS = 128

/** The same number for all: a slower one would otherwise be warm later, and idle for more of each request. */
function upTo(requests: number): (sent: number) => boolean {
  return (sent) => sent < requests
}

/** What the writer of charges prints about itself. */
export interface Written {
  readonly charges: number
  readonly commits: number
  readonly seconds: number
  readonly micros: number
  readonly serverMicros: number
}

interface Entrant {
  readonly name: Engine | "off"
  readonly running: Running
  readonly micros: number[]
}

type ChargeScene = Pick<Scene, "workshop" | "upstream">

/** Charges per second and what each costs; then a request with its durable charge beside the same one with billing off. */
export async function benchCharges(effort: Effort, scene: ChargeScene): Promise<readonly Verdict[]> {
  const server = await launchPostgres({ durable: true })
  try {
    console.log("\ncharges: through the ledger alone, 128 at a time; Postgres flushes every commit")
    for (const engine of ENGINES) console.log(describeWritten(engine, await write(engine, effort, scene, server)))
    return await compare(effort, scene, server)
  } finally {
    await server.stop()
  }
}

async function write(
  engine: Engine,
  effort: Effort,
  { workshop }: ChargeScene,
  server: PostgresServer,
): Promise<Written> {
  const folder = join(workshop.folder, `charges-${engine}`)
  const url = engine === "postgres" ? await server.freshDatabase() : ""
  const ms = effort.round.requestsMs * 2
  const argv = [process.execPath, join(import.meta.dir, "charge-writer.ts"), folder, String(ms), url, `${server.pid()}`]
  const child = Bun.spawn(argv, { stdout: "pipe", stderr: "inherit" })
  const [printed, code] = await Promise.all([child.stdout.text(), child.exited])
  if (code !== 0) throw new Error(`the writer of charges ended with ${code}`)
  return JSON.parse(printed)
}

function describeWritten(engine: Engine, { charges, commits, seconds, micros, serverMicros }: Written): string {
  const server = engine === "postgres" ? `, the server ${(serverMicros / charges).toFixed(1)} µs` : ""
  const rate = `${Math.round(charges / seconds)} charges per second, ${(charges / commits).toFixed(0)} a commit`
  return `${engine}: ${rate}, CPU ${(micros / charges).toFixed(1)} µs a charge${server}`
}

async function compare(effort: Effort, scene: ChargeScene, server: PostgresServer): Promise<readonly Verdict[]> {
  const database = { DATABASE_URL: await server.freshDatabase(), TOLLGATE_MASTER_KEY: MASTER_KEY }
  const entrants = [
    await enter("off", { TOLLGATE_BILLING: "off" }),
    await enter("sqlite", {}),
    await enter("postgres", database),
  ]
  for (const { running } of entrants)
    await measureAnswers(PRODUCT_PATH, running, upTo(effort.warmUp.charged), CONNECTIONS)
  for (let round = 1; round <= effort.rounds * ROUNDS_FOR_EACH; round++) {
    for (const entrant of entrants) await measureOnce(round, entrant)
  }
  const [off, ...charged] = entrants
  // Round by round, because other work on the machine weighs on neighbours in time alike.
  const times = (micros: readonly number[]) => median(micros.map((spent, round) => spent / (off?.micros[round] ?? 0)))
  const verdicts = charged.map(({ name, micros }) => judgeCharged(name, times(micros)))
  console.log(`\n${verdicts.map((verdict) => verdict.line).join("\n")}`)
  return verdicts

  async function enter(name: Entrant["name"], env: Readonly<Record<string, string>>): Promise<Entrant> {
    const running = await startTollgate(scene, { name: `billing-${name}`, price: PRICE, env })
    return { name, running, micros: [] }
  }

  async function measureOnce(round: number, { name, running, micros }: Entrant): Promise<void> {
    const serverBefore = cpuMicrosEver(server.pid())
    const { micros: spent, tally } = await measureAnswers(
      PRODUCT_PATH,
      running,
      upTo(effort.round.charged),
      CONNECTIONS,
    )
    micros.push(spent / tally.answers)
    const serverSpent = (cpuMicrosEver(server.pid()) - serverBefore) / tally.answers
    const apart = name === "postgres" ? `; the Postgres server ${serverSpent.toFixed(1)} µs` : ""
    const what = name === "off" ? "billing off" : `charged, ${name}`
    console.log(`round ${round} ${what}: ${tally.answers} requests at ${(spent / tally.answers).toFixed(1)} µs${apart}`)
  }
}
