import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import type { Engine } from "../../src/store/schema.ts"
import { openWay } from "../limits/blocked-way.ts"
import { engines, slowStart } from "../store/engines.ts"
import { askForFilm, type FilmHouse, filmFaults, filmHouse, filmVendorNames, lastWord } from "../support/film-house.ts"
import { startPostgres } from "../support/postgres.ts"
import { until, workbench } from "../support/workbench.ts"
import { accepted, ask, expectEnd, held, kill, onlyJob, quick, submitsOf, takeOver } from "./one-film.ts"

setDefaultTimeout(60_000)
const bench = workbench()
let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator()
  await startPostgres()
}, slowStart)
afterAll(async () => {
  await bench.clear()
  expect(simulator.complaints).toEqual([])
  await simulator.stop()
})

async function house(engine: Engine, origin?: string): Promise<FilmHouse> {
  const databaseUrl = engine === "postgres" ? await (await startPostgres()).freshDatabase() : null
  return filmHouse(bench, { simulator, databaseUrl, ...(origin === undefined ? {} : { origin }) })
}

const unsure = /not known whether the vendor took the job, so it was not sent again; nothing is charged/

test.each([...engines])(
  "killed before the submit reaches the vendor, %s: not sent again, failed, nothing charged",
  async (engine) => {
    const way = await openWay(simulator.port)
    const stage = await house(engine, way.url.replace("redis:", "http:"))
    const first = await stage.start()
    way.block()
    const answers = [ask(first, "kling"), ask(first, "runway")]
    const [findable, other] = [await onlyJob(stage, "kling"), await onlyJob(stage, "runway")]
    await kill(first)
    expect(await Promise.all(answers)).toEqual([null, null])
    way.clear()

    const second = await takeOver(stage)
    expect((await lastWord(second.url, other)).error?.message).toMatch(unsure)
    // A vendor that can look it up is given a minute, in which a late submit might still come.
    await until(async () => (await stage.job(findable)).polls > 0, 10_000)
    expect(await stage.job(findable)).toMatchObject({
      state: "submitting",
      trouble: expect.stringContaining("not yet"),
    })
    await stage.change("update jobs set created_at = created_at - 61000, next_look_at = 1 where state = 'submitting'")
    expect((await lastWord(second.url, findable)).error?.message).toMatch(/never reached the vendor/)
    for (const id of [findable, other]) await expectEnd(stage, id, "failed")
    for (const name of filmVendorNames) expect(submitsOf(stage.vendor(name))).toEqual([])
    await kill(second)
    way.close()
  },
)

test.each([...engines])(
  "killed after the vendor has taken a job, before its reference is saved, %s: found by our id and charged once, or failed where there is no look-up; not sent again",
  async (engine) => {
    const stage = await house(engine)
    const [kling, runway] = [stage.vendor("kling"), stage.vendor("runway")]
    const first = await stage.start()
    for (const vendor of [kling, runway]) vendor.behave(held)
    const answers = [ask(first, "kling"), ask(first, "runway")]
    await until(() => kling.memory.videos.size + runway.memory.videos.size === 2)
    await kill(first)
    expect(await Promise.all(answers)).toEqual([null, null])

    const second = await takeOver(stage)
    const [findable, other] = [await onlyJob(stage, "kling"), await onlyJob(stage, "runway")]
    expect((await lastWord(second.url, other)).error?.message).toMatch(unsure)
    expect(await lastWord(second.url, findable)).toMatchObject({ status: "completed", seconds: 6.5 })
    await expectEnd(stage, findable, "completed")
    await expectEnd(stage, other, "failed")
    expect([submitsOf(kling), submitsOf(runway)]).toEqual([[1], [1]])
    await kill(second)
  },
)

test.each([...engines])("killed after the reference is saved, %s: completed and charged once", async (engine) => {
  const stage = await house(engine)
  const first = await stage.start()
  for (const name of filmVendorNames) stage.vendor(name).behave(quick)
  const ids = await Promise.all(filmVendorNames.map((name) => accepted(first, name)))
  await kill(first)
  const second = await takeOver(stage)
  const words = await Promise.all(ids.map((id) => lastWord(second.url, id)))
  expect(words.map(({ status, seconds }) => [status, seconds])).toEqual(ids.map(() => ["completed", 6.5]))
  for (const id of ids) await expectEnd(stage, id, "completed")
  for (const name of filmVendorNames) expect(submitsOf(stage.vendor(name))).toEqual([1])
  await kill(second)
})

test.each([...engines])(
  "killed while a vendor is asked, and between another's last word and the charge, %s: completed and charged once",
  async (engine) => {
    const stage = await house(engine)
    const [asked, ended] = [stage.vendor("kling"), stage.vendor("runway")]
    const first = await stage.start()
    asked.behave({ ...quick, polls: Array(8).fill({ kind: "hang" }) })
    ended.behave(quick)
    const ids = [await accepted(first, "kling"), await accepted(first, "runway")] as const
    // The next call finds the job done; the one after that, for its length, gets no answer.
    ended.behave(quick, { kind: "hang" })
    await until(() => asked.calls.length === 2 && ended.calls.some(({ path }) => path.includes("/cdn/")), 15_000)
    await kill(first)
    expect((await stage.books()).lines.filter(({ kind }) => kind === "charge")).toEqual([])

    ended.behave()
    for (const { faults } of asked.memory.videos.values()) faults.length = 0
    const second = await takeOver(stage)
    for (const id of ids) {
      expect(await lastWord(second.url, id)).toMatchObject({ status: "completed", seconds: 6.5 })
    }
    for (const id of ids) await expectEnd(stage, id, "completed")
    expect(await stage.job(ids[1])).toMatchObject({ secondsSource: "probed" })
    expect([submitsOf(asked), submitsOf(ended)]).toEqual([[1], [1]])
    await kill(second)
  },
)

test.each([...engines])(
  "killed at random moments, again and again, with many films, %s: each completed and charged once, none sent twice",
  async (engine) => {
    const stage = await house(engine)
    for (const name of filmVendorNames) stage.vendor(name).behave({ ...quick, runningMs: 2000 })
    let instance = await stage.start()
    const known: string[] = []
    const each = 4
    const rounds = 4
    for (let round = 0; round < rounds; round++) {
      const wishes = filmVendorNames.flatMap((model) =>
        Array.from({ length: each }, (_, number) => ({ model, prompt: `film ${round}.${number}`, duration: 4 })),
      )
      for (const { body } of await Promise.all(wishes.map((wish) => askForFilm(instance.url, wish)))) {
        known.push(body.id!)
      }
      await Bun.sleep(200 + Math.random() * 2000)
      await kill(instance)
      instance = await takeOver(stage)
    }
    await Promise.all(known.map((id) => lastWord(instance.url, id)))
    const books = await stage.books()
    expect(filmFaults(books)).toEqual([])
    expect(books.jobs.map(({ id, state }) => [id, state]).sort()).toEqual(known.map((id) => [id, "completed"]).sort())
    for (const name of filmVendorNames) expect(submitsOf(stage.vendor(name))).toEqual(Array(rounds * each).fill(1))
    await kill(instance)
  },
)
