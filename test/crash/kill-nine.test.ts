import { afterAll, beforeAll, expect, test } from "bun:test"
import { join } from "node:path"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import type { DatabaseTarget } from "../../src/store/db.ts"
import { emptyJournal, faultsIn, readBooks } from "../support/paid-once.ts"
import { payingCrowd } from "../support/paying-crowd.ts"
import { launchPostgres, type PostgresServer } from "../support/postgres.ts"
import { type Variables, workbench } from "../support/workbench.ts"

const bench = workbench()
let simulator: Simulator
let server: PostgresServer
beforeAll(async () => {
  simulator = await startSimulator()
  server = await launchPostgres({ durable: true })
}, 120_000)
afterAll(async () => {
  await bench.clear()
  await simulator.stop()
  await server.stop()
})

const rounds = 25
const longTest = 240_000

interface Scene {
  readonly target: DatabaseTarget
  readonly env: Variables
  /** What else happens before the gateway is killed; each in its turn. */
  readonly troubles: readonly (() => Promise<void>)[]
  /** Makes good what a trouble has done. */
  repair(): Promise<void>
}

const nothing = async (): Promise<void> => {}

function between(least: number, most: number): number {
  return least + Math.random() * (most - least)
}

/** One data folder lives through all rounds; each ends with SIGKILL at a random moment under load. */
async function killUnderLoad({ target, env, troubles, repair }: Scene): Promise<void> {
  const crowd = payingCrowd(simulator)
  const config = bench.file(`${target.kind}.json`, JSON.stringify(crowd.config))
  const data = join(bench.folder, target.kind)
  const start = () =>
    bench.start(["serve", "--port", "0", "--config", config, "--data", data], { TOLLGATE_LOG: "error", ...env })
  for (let round = 0; round < rounds; round++) {
    const instance = await start()
    let isOver = false
    const load = crowd.run(instance.url, () => isOver)
    await Bun.sleep(between(100, 600))
    await troubles[round % troubles.length]?.()
    instance.signal("SIGKILL")
    isOver = true
    await Promise.all([load, instance.ended])
    await repair()
  }
  const last = await start()
  await emptyJournal(data)
  last.signal("SIGTERM")
  expect(await last.ended).toBe(0)

  expect(faultsIn(await readBooks(target), crowd)).toEqual([])
  const saw = (outcome: string) => crowd.sent.filter((request) => request.outcome === outcome).length
  expect(saw("whole")).toBeGreaterThan(rounds * 16)
  expect(saw("cut")).toBeGreaterThan(rounds)
  expect(await bench.run(["reconcile", "--data", data], env)).toMatchObject({
    code: 0,
    out: expect.stringContaining("no differences"),
  })
}

const promise = "every response that arrived whole is charged exactly once, nothing twice"

test(
  `kill -9 at random moments under load, SQLite, ${rounds} rounds: ${promise}`,
  () => {
    const target = { kind: "sqlite", file: join(bench.folder, "sqlite", "tollgate.db") } as const
    return killUnderLoad({ target, env: {}, troubles: [nothing], repair: nothing })
  },
  longTest,
)

test(
  `kill -9 at random moments under load, Postgres, which dies too in some of ${rounds} rounds: ${promise}`,
  async () => {
    const url = await server.freshDatabase()
    let isAway = false
    const goesAway = async (): Promise<void> => {
      isAway = true
      await server.kill()
      await Bun.sleep(between(0, 400))
    }
    const comesBack = async (): Promise<void> => {
      await server.restart()
      await Bun.sleep(between(0, 400))
    }
    await killUnderLoad({
      target: { kind: "postgres", url },
      env: { DATABASE_URL: url, TOLLGATE_MASTER_KEY: "kill-nine-master-key-0123456789abcdef" },
      troubles: [nothing, goesAway, nothing, comesBack],
      async repair() {
        if (isAway) await server.start()
        isAway = false
      },
    })
  },
  longTest,
)
