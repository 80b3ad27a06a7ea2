import { afterAll, beforeAll, expect, test } from "bun:test"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import type { DatabaseTarget } from "../../src/store/db.ts"
import { emptyJournal, faultsIn, journalled, readBooks } from "../support/paid-once.ts"
import { type PayingCrowd, payingCrowd, type Sent } from "../support/paying-crowd.ts"
import { launchPostgres, type PostgresServer } from "../support/postgres.ts"
import { type Instance, until, type Variables, workbench } from "../support/workbench.ts"

const bench = workbench()
let simulator: Simulator
let server: PostgresServer
beforeAll(async () => {
  simulator = await startSimulator()
  server = await launchPostgres()
}, 120_000)
afterAll(async () => {
  await bench.clear()
  await simulator.stop()
  await server.stop()
})

const longTest = 120_000
const outageMs = 10_000
/** What the gateway has to notice that nobody answers any more. */
const noticedWithinMs = 3_000

interface Scene {
  readonly crowd: PayingCrowd
  readonly data: string
  readonly target: DatabaseTarget
  readonly env: Variables
  start(): Promise<Instance>
}

function sceneIn(data: string, target: DatabaseTarget, env: Variables): Scene {
  const crowd = payingCrowd(simulator)
  const config = bench.file(`${crypto.randomUUID()}.json`, JSON.stringify(crowd.config))
  const args = ["serve", "--port", "0", "--config", config, "--data", data]
  return { crowd, data, target, env, start: () => bench.start(args, env) }
}

async function postgresScene(): Promise<Scene> {
  const url = await server.freshDatabase()
  const env = { DATABASE_URL: url, TOLLGATE_MASTER_KEY: "database-away-master-key-0123456789" }
  return sceneIn(bench.freshData(), { kind: "postgres", url }, env)
}

/** Starts the load; `stop` ends it and waits for the last responses. */
function underLoad({ crowd }: Scene, instance: Instance): { stop(): Promise<void> } {
  let isOver = false
  const load = crowd.run(instance.url, () => isOver)
  return {
    stop() {
      isOver = true
      return load
    },
  }
}

const isWhole = ({ outcome }: Sent): boolean => outcome === "whole"

/** Waits until so many more responses have come whole. */
async function wholeResponses({ crowd }: Scene, count: number): Promise<void> {
  const before = crowd.sent.length
  await until(() => crowd.sent.slice(before).filter(isWhole).length >= count, 20_000)
}

/** Ends the gateway in peace and looks at the books. */
async function expectCleanBooks({ crowd, data, target, env }: Scene, instance: Instance): Promise<void> {
  await emptyJournal(data)
  instance.signal("SIGTERM")
  expect(await instance.ended).toBe(0)
  expect(faultsIn(await readBooks(target), crowd)).toEqual([])
  expect(await bench.run(["reconcile", "--data", data], env)).toMatchObject({
    code: 0,
    out: expect.stringContaining("no differences"),
  })
}

const outages = [
  ["killed and started again", () => server.kill(), () => server.start()],
  ["held and let go again", async () => server.pause(), async () => server.resume()],
] as const

test.each([...outages])(
  "Postgres is %s after ten seconds under load: responses go on, and all is charged once, in order",
  async (_, takeAway, giveBack) => {
    const scene = await postgresScene()
    const instance = await scene.start()
    const load = underLoad(scene, instance)
    await wholeResponses(scene, 200)

    await takeAway()
    const awayAt = performance.now()
    await Bun.sleep(outageMs)
    expect(await journalled(scene.data)).toBeGreaterThan(0)
    await giveBack()
    const backAt = performance.now()
    await emptyJournal(scene.data)
    await wholeResponses(scene, 200)
    await load.stop()

    for (let second = awayAt + noticedWithinMs; second + 1000 <= backAt; second += 1000) {
      const ended = scene.crowd.sent.filter(({ endedAt }) => endedAt >= second && endedAt < second + 1000)
      expect(ended.filter(isWhole).length).toBeGreaterThan(0)
    }
    expect(scene.crowd.sent.filter((request) => !isWhole(request))).toEqual([])
    await expectCleanBooks(scene, instance)
  },
  longTest,
)

test(
  "the gateway is killed while Postgres is away: it starts once Postgres is back, and posts what waited once",
  async () => {
    const scene = await postgresScene()
    const first = await scene.start()
    const load = underLoad(scene, first)
    await wholeResponses(scene, 100)
    await server.kill()
    await until(async () => (await journalled(scene.data)) > 100, 20_000)
    first.signal("SIGKILL")
    await Promise.all([load.stop(), first.ended])
    const waiting = await journalled(scene.data)

    await expect(scene.start()).rejects.toThrow(/cannot open the database/)
    expect(await journalled(scene.data)).toBe(waiting)
    await server.start()
    const second = await scene.start()
    await emptyJournal(scene.data)
    second.signal("SIGKILL")
    await second.ended
    await expectCleanBooks(scene, await scene.start())
  },
  longTest,
)

/** Until new requests are refused, and from then on all of them, in the words that clients know. */
async function expectRefusals({ crowd }: Scene): Promise<void> {
  await until(() => crowd.sent.some(({ outcome }) => outcome === "refused"), 20_000)
  const from = performance.now()
  // Longer than a response waits for its charge, so that those that were running have been given up too.
  await until(() => performance.now() > from + 12_000, 20_000)
  const since = crowd.sent.filter(({ beganAt }) => beganAt > from)
  expect(since.length).toBeGreaterThan(0)
  expect(since.filter(({ outcome, code }) => outcome !== "refused" || code !== "backend_unavailable")).toEqual([])
}

/** Requests that had been answered by their vendor when nothing could be kept any more: charged all the same, later. */
async function expectLateCharges({ crowd, target }: Scene): Promise<void> {
  const givenUp = crowd.sent.filter(({ outcome, beganAt, endedAt }) => outcome !== "whole" && endedAt - beganAt > 5000)
  expect(givenUp.length).toBeGreaterThan(0)
  expect(givenUp.filter(({ code }) => code !== null && code !== "backend_unavailable")).toEqual([])
  const paid = new Set((await readBooks(target)).lines.map(({ reference }) => reference))
  expect(givenUp.filter(({ id }) => id === null || !paid.has(id))).toEqual([])
}

test(
  "Postgres is away and the journal cannot be written: 503 for new requests, all is charged after recovery, without a restart",
  async () => {
    const scene = await postgresScene()
    const instance = await scene.start()
    const load = underLoad(scene, instance)
    await wholeResponses(scene, 100)
    const journal = join(scene.data, "journal")
    rmSync(journal, { recursive: true })
    writeFileSync(journal, "in the way")
    await server.kill()
    await expectRefusals(scene)

    await server.start()
    await wholeResponses(scene, 100)
    await load.stop()
    rmSync(journal)
    await expectLateCharges(scene)
    await expectCleanBooks(scene, instance)
  },
  longTest,
)

const mayMount = process.getuid?.() === 0 && Bun.which("mount") !== null

test.skipIf(!mayMount)(
  "the disk of the data folder is full (needs root, to mount one): 503 for new requests, all is charged once there is room, without a restart",
  async () => {
    const disk = join(bench.folder, "disk")
    mkdirSync(disk)
    expect(Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", disk]).exitCode).toBe(0)
    try {
      const data = join(disk, "data")
      const scene = sceneIn(data, { kind: "sqlite", file: join(data, "tollgate.db") }, {})
      const instance = await scene.start()
      const load = underLoad(scene, instance)
      await wholeResponses(scene, 100)
      const filler = join(disk, "filler")
      expect(Bun.spawnSync(["dd", "if=/dev/zero", `of=${filler}`, "bs=64k"], { stderr: "ignore" }).exitCode).toBe(1)
      await expectRefusals(scene)

      rmSync(filler)
      await wholeResponses(scene, 100)
      await load.stop()
      await expectLateCharges(scene)
      await expectCleanBooks(scene, instance)
    } finally {
      Bun.spawnSync(["umount", "-l", disk])
    }
  },
  longTest,
)
