import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import { SQL } from "bun"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { slowStart } from "../store/engines.ts"
import { type FilmHouse, type FilmVendorName, filmHouse, lastWord, lookForFilm } from "../support/film-house.ts"
import { administer, startPostgres } from "../support/postgres.ts"
import { type Instance, until, workbench } from "../support/workbench.ts"
import { accepted, ask, expectEnd, kill, onlyJob, quick, submitsOf } from "./one-film.ts"

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

/** Two instances on one database, of which the first has a job in hand when it is held. */
interface Pair extends AsyncDisposable {
  readonly stage: FilmHouse
  readonly first: Instance
  /** Started when the first is held, so that everything before was the first one's work. */
  second(): Promise<Instance>
  readonly url: string
}

async function pair(): Promise<Pair> {
  const url = await (await startPostgres()).freshDatabase()
  const stage = filmHouse(bench, { simulator, databaseUrl: url })
  const first = await stage.start()
  const instances = [first]
  return {
    stage,
    first,
    url,
    async second() {
      const second = await stage.start()
      instances.push(second)
      return second
    },
    async [Symbol.asyncDispose]() {
      first.signal("SIGCONT")
      await Promise.all(instances.map(kill))
    },
  }
}

/** Nothing of an instance that was held and goes on is left to come once it has served a look at the job itself. */
async function goesOn(instance: Instance, id: string, state: string): Promise<void> {
  instance.signal("SIGCONT")
  await until(async () => (await lookForFilm(instance.url, id)).status === state)
}

/** What a call gets that is the last before the charge, late: no such part, so that the length is the one that was asked for. */
const lateFile = { kind: "status", status: 416, delayMs: 2000 } as const

test.concurrent.each([
  ["kling", "completed"],
  ["runway", "failed"],
] as const)(
  "held in the middle of a submit until its lease is over (%s): the other instance decides (%s), nothing is sent twice",
  async (name: FilmVendorName, state) => {
    await using here = await pair()
    const { stage, first } = here
    const vendor = stage.vendor(name)
    vendor.behave({ ...quick, headDelayMs: 1500 })
    const answer = ask(first, name)
    await until(() => vendor.memory.videos.size === 1)
    const id = await onlyJob(stage, name)
    first.signal("SIGSTOP")
    await stage.endLeases()
    const second = await here.second()
    expect((await lastWord(second.url, id)).status).toBe(state)
    // The vendor's answer has been waiting for it.
    await until(() => vendor.calls[0]?.endedAt !== null)
    await goesOn(first, id, state)
    expect(await answer).toMatchObject({ id, status: "queued" })
    expect((await lookForFilm(second.url, id)).status).toBe(state)
    expect(submitsOf(vendor)).toEqual([1])
    await expectEnd(stage, id, state)
  },
)

test.concurrent("held while it asks the vendor until its lease is over: the other completes the job, its own answer changes nothing", async () => {
  await using here = await pair()
  const { stage, first } = here
  const vendor = stage.vendor("kling")
  // What the first look gets is an answer of another time: the job is queued again, as far as it goes.
  vendor.behave({ ...quick, polls: [{ kind: "status", status: 500, delayMs: 2000 }] })
  const id = await accepted(first, "kling")
  await until(() => vendor.calls.length === 2)
  first.signal("SIGSTOP")
  await stage.endLeases()
  const second = await here.second()
  expect(await lastWord(second.url, id)).toMatchObject({ status: "completed", seconds: 6.5 })
  const done = await stage.job(id)
  await until(() => vendor.calls[1]?.endedAt !== null)
  await goesOn(first, id, "completed")
  // Twice as long as looks wait to be written together, and then some.
  await Bun.sleep(200)
  expect(await stage.job(id)).toEqual(done)
  expect(submitsOf(vendor)).toEqual([1])
  await expectEnd(stage, id, "completed")
})

test.concurrent("held on its way to charge until its lease is over: the other charges, and it does not charge again", async () => {
  await using here = await pair()
  const { stage, first } = here
  const vendor = stage.vendor("runway")
  vendor.behave(quick)
  const id = await accepted(first, "runway")
  vendor.behave(quick, lateFile)
  await until(() => vendor.calls.some(({ path }) => path.includes("/cdn/")), 10_000)
  first.signal("SIGSTOP")
  vendor.behave()
  await stage.endLeases()
  const second = await here.second()
  expect(await lastWord(second.url, id)).toMatchObject({ status: "completed", seconds: 6.5 })
  const done = await stage.job(id)
  await until(() => vendor.calls.every(({ endedAt }) => endedAt !== null))
  await goesOn(first, id, "completed")
  // It would charge four seconds, as asked for, because the file did not open for it.
  await Bun.sleep(200)
  expect(await stage.job(id)).toEqual(done)
  expect(submitsOf(vendor)).toEqual([1])
  await expectEnd(stage, id, "completed")
})

/** Holds the account's row, which a charge needs, from the outside. */
async function holdAccount(url: string): Promise<{ release(): Promise<void> }> {
  const sql = new SQL(url, { max: 1 })
  const connection = await sql.reserve()
  await connection.unsafe("begin")
  await connection.unsafe("select id from accounts for no key update")
  return {
    async release() {
      await connection.unsafe("rollback")
      connection.release()
      await sql.close()
    },
  }
}

/** Waits until the end of a job stands before the account's row; requests that are put on record may stand there too, in other words. */
async function untilCharging(url: string): Promise<void> {
  const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
    and query like '%from "accounts"%for no key update%'`
  await until(async () => (await administer(url, (sql) => sql.unsafe(waiting))).length === 1, 10_000)
}

test.concurrent("killed in the middle of the transaction that completes and charges: neither happened, then both do, once", async () => {
  await using here = await pair()
  const { stage, first, url } = here
  const vendor = stage.vendor("kling")
  vendor.behave(quick)
  const id = await accepted(first, "kling")
  const account = await holdAccount(url)
  await untilCharging(url)
  await kill(first)
  await account.release()
  expect(await stage.job(id)).toMatchObject({ state: "queued", charge: 0n })
  await stage.endLeases()
  const second = await here.second()
  expect(await lastWord(second.url, id)).toMatchObject({ status: "completed", seconds: 6.5 })
  expect(submitsOf(vendor)).toEqual([1])
  await expectEnd(stage, id, "completed")
})

test.concurrent("held in the middle of the transaction that completes and charges: it keeps the account from the others for a while only, and the job is charged once", async () => {
  await using here = await pair()
  const { stage, first, url } = here
  const vendor = stage.vendor("kling")
  vendor.behave(quick)
  const id = await accepted(first, "kling")
  const account = await holdAccount(url)
  await untilCharging(url)
  first.signal("SIGSTOP")
  await account.release()
  const second = await here.second()
  const other = await accepted(second, "kling")
  await stage.endLeases()
  for (const each of [other, id]) expect((await lastWord(second.url, each, 80_000)).status).toBe("completed")
  await goesOn(first, id, "completed")
  expect(submitsOf(vendor)).toEqual([1, 1])
  for (const each of [other, id]) await expectEnd(stage, each, "completed")
  // It has noticed, and works again.
  const third = await accepted(first, "kling")
  expect((await lastWord(first.url, third)).status).toBe("completed")
}, 120_000)
