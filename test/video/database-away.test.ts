import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { slowStart } from "../store/engines.ts"
import { askForFilm, filmFaults, filmHouse, filmVendorNames } from "../support/film-house.ts"
import { launchPostgres, type PostgresServer } from "../support/postgres.ts"
import { until, workbench } from "../support/workbench.ts"
import { submitsOf } from "./one-film.ts"

setDefaultTimeout(90_000)
const bench = workbench()
let simulator: Simulator
let servers: readonly PostgresServer[]
beforeAll(async () => {
  simulator = await startSimulator()
  servers = [await launchPostgres(), await launchPostgres()]
}, slowStart)
afterAll(async () => {
  await bench.clear()
  expect(simulator.complaints).toEqual([])
  await simulator.stop()
  for (const server of servers) await server.stop()
})

const awayMs = 10_000

test.concurrent.each([
  ["killed and started again", 0],
  ["held and let go again", 1],
] as const)(
  "Postgres is %s after ten seconds: jobs go on, a submit that the vendor took meanwhile is not lost, each is charged once",
  async (how, number) => {
    const server = servers[number]!
    const stage = filmHouse(bench, { simulator, databaseUrl: await server.freshDatabase() })
    const instance = await stage.start()
    const wish = (name: (typeof filmVendorNames)[number], film: number) =>
      askForFilm(instance.url, { model: name, prompt: `film ${film}`, duration: 4 })
    // Some end before, some during and some after the time in which nothing can be written.
    const asks = filmVendorNames.flatMap((name) =>
      Array.from({ length: 12 }, async (_, film) => {
        stage.vendor(name).behave({ kind: "video_job", queuedMs: 100, runningMs: 1200 * film, seconds: 4 })
        return wish(name, film)
      }),
    )
    expect((await Promise.all(asks)).map(({ status }) => status)).toEqual(asks.map(() => 200))
    // The vendor's answers come when the database is gone.
    const late = filmVendorNames.map((name) => {
      stage.vendor(name).behave({ kind: "video_job", runningMs: 1000, seconds: 8, headDelayMs: 2500 })
      return wish(name, 100)
    })
    await until(() => filmVendorNames.every((name) => stage.vendor(name).memory.videos.size === 13))
    if (how === "killed and started again") await server.kill()
    else server.pause()
    await Bun.sleep(awayMs)
    if (how === "killed and started again") await server.start()
    else server.resume()

    for (const answer of await Promise.all(late)) expect(answer).toMatchObject({ status: 200 })
    await until(async () => (await stage.openJobs()) === 0, 60_000)
    const books = await stage.books()
    expect(filmFaults(books)).toEqual([])
    expect(books.jobs.map(({ state }) => state)).toEqual(Array(39).fill("completed"))
    for (const name of filmVendorNames) expect(submitsOf(stage.vendor(name))).toEqual(Array(13).fill(1))
    instance.signal("SIGTERM")
    expect(await instance.ended).toBe(0)
    expect(await stage.reconcile()).toMatchObject({ code: 0 })
  },
)
