import { afterAll, beforeAll, expect, test } from "bun:test"
import type { Behaviour, BehaviourOf, Fault } from "../../simulator/behaviour.ts"
import { stageOf } from "../../simulator/protocols/video/job.ts"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { slowStart } from "../store/engines.ts"
import {
  askForFilm,
  type FilmBooks,
  type FilmHouse,
  type FilmVendorName,
  filmFaults,
  filmHouse,
  filmVendorNames,
  filmVendors,
} from "../support/film-house.ts"
import { launchPostgres, type PostgresServer } from "../support/postgres.ts"
import { seededRandom } from "../support/seeded-random.ts"
import { type Instance, until, workbench } from "../support/workbench.ts"

const bench = workbench()
let simulator: Simulator
const servers: PostgresServer[] = []
beforeAll(async () => {
  simulator = await startSimulator()
}, slowStart)
afterAll(async () => {
  await bench.clear()
  await simulator.stop()
  for (const server of servers) await server.stop()
})

const jobs = 200
const seeds = [11, 22, 33]
const submitMs = 3000

/** Chances that one seed decides on. */
interface Chance {
  between(least: number, most: number): number
  happens(share: number): boolean
  of<T>(choices: readonly T[]): T
}

function chanceOf(seed: number): Chance {
  const random = seededRandom(seed)
  return {
    between: (least, most) => least + random() * (most - least),
    happens: (share) => random() < share,
    of: (choices) => choices[Math.floor(random() * choices.length)]!,
  }
}

const pollFaults: readonly Fault[] = [
  { kind: "status", status: 429 },
  { kind: "status", status: 500 },
  { kind: "status", status: 503, delayMs: 700 },
  { kind: "html" },
  { kind: "reset" },
  { kind: "close" },
  { kind: "garbage" },
]

type Plan = BehaviourOf<"video_job">

function randomSubmit({ happens, of }: Chance): Pick<Plan, "submit" | "headDelayMs"> {
  if (happens(0.6)) return happens(0.3) ? { headDelayMs: 800 } : {}
  const refusal = (status: number) => ({ submit: { status, json: { error: "not now" } } })
  return of([refusal(400), refusal(429), refusal(503), { submit: "lost" }, { submit: "hang" }])
}

/** The life of one film: how it is taken, what its vendor says of it meanwhile, and how it ends. */
function randomFilm(chance: Chance, seconds: readonly number[]): Plan {
  const { between, happens, of } = chance
  return {
    kind: "video_job",
    queuedMs: between(0, 500),
    runningMs: between(0, 6000),
    seconds: of(seconds) + 0.5,
    outcome: happens(0.75) ? "success" : of(["failure", "moderated", "cancelled"]),
    polls: happens(0.3) ? [of(pollFaults), of(pollFaults)] : [],
    words: happens(0.1) ? ["thinking", "", "almost"] : [],
    ...randomSubmit(chance),
  }
}

interface Pair {
  readonly instances: Instance[]
  readonly server: PostgresServer
  readonly stage: FilmHouse
}

/** Troubles of processes, one after the other, each of them made good again. */
async function trouble({ instances, server, stage }: Pair, { of, happens, between }: Chance): Promise<void> {
  const place = of([0, 1])
  const instance = instances[place]!
  switch (of(["kill", "hold", "hold", "database"] as const)) {
    case "kill":
      instance.signal("SIGKILL")
      await instance.ended
      await Bun.sleep(between(0, 500))
      instances[place] = await stage.start()
      return
    case "hold":
      instance.signal("SIGSTOP")
      // As if it stood still for longer than its leases: all that is claimed is anybody's.
      if (happens(0.7)) await stage.endLeases()
      await Bun.sleep(between(500, 3000))
      instance.signal("SIGCONT")
      return
    case "database":
      await server.kill()
      await Bun.sleep(between(100, 2000))
      await server.start()
  }
}

interface Answers {
  /** Ids that clients were given. */
  readonly ids: string[]
}

async function submitAll({ instances, stage }: Pair, chance: Chance): Promise<Answers> {
  const ids: string[] = []
  const asks: Promise<void>[] = []
  for (let number = 0; number < jobs; number++) {
    const model = chance.of(filmVendorNames)
    const plan: Behaviour = randomFilm(chance, filmVendors[model].seconds)
    stage.vendor(model).behave(plan)
    const { url } = chance.of(instances)
    const ask = askForFilm(url, { model, prompt: `film ${number}`, duration: chance.of(filmVendors[model].seconds) })
    // A client whose gateway is gone learns nothing.
    asks.push(ask.then(({ status, body }) => void (status === 200 && ids.push(body.id!))).catch(() => {}))
    await Bun.sleep(chance.between(0, 200))
  }
  await Promise.all(asks)
  return { ids }
}

/** Ends all waiting that is only a matter of time, and waits for the rest. */
async function quiesce({ stage }: Pair): Promise<void> {
  for (const name of filmVendorNames) stage.vendor(name).behave()
  await stage.endLeases()
  // Vendors that look jobs up are given a minute for those that may be on their way.
  await stage.change("update jobs set created_at = created_at - 61000 where state = 'submitting'")
  await until(async () => {
    await Bun.sleep(500)
    return (await stage.openJobs()) === 0
  }, 60_000)
}

/** The gateway's jobs beside the vendor's. A vendor that looks jobs up knows ours by its id, the others by the prompt. */
function disagreements(books: FilmBooks, stage: FilmHouse, name: FilmVendorName): readonly string[] {
  const ours = new Map(books.jobs.map((job) => [job.vendorId, job]))
  const { videos, submits } = stage.vendor(name).memory
  const taken = Map.groupBy(videos.values(), ({ ask }) => ask.externalId ?? ask.prompt)
  const faults = [...taken].filter(([, films]) => films.length > 1).map(([film]) => `${film} was taken twice`)
  for (const [film, count] of submits) {
    if (count > 1 && taken.has(film) && name === "kling") faults.push(`${film} was sent ${count} times`)
  }
  for (const film of videos.values()) {
    const job = ours.get(film.id)
    const isMade = stageOf(film) === "success"
    if (job === undefined) {
      // Taken by a vendor that said nothing, and that cannot be asked for it.
      if (name === "kling") faults.push(`${film.id} is not known here`)
    } else if ((job.state === "completed") !== isMade) faults.push(`${film.id} is ${stageOf(film)}, here ${job.state}`)
    else if (isMade && job.microseconds !== film.plan.seconds! * 1_000_000) {
      faults.push(`${film.id} has ${film.plan.seconds} seconds, here ${job.microseconds} microseconds`)
    }
  }
  return faults
}

test.concurrent.each(seeds)(
  "random troubles of vendors, processes and database, seed %d: nothing is made twice, what is made is charged once, nothing stays open",
  async (seed) => {
    const chance = chanceOf(seed)
    const server = await launchPostgres()
    servers.push(server)
    const stage = filmHouse(bench, { simulator, databaseUrl: await server.freshDatabase(), submitMs })
    const pair: Pair = { stage, server, instances: [await stage.start(), await stage.start()] }
    let isOver = false
    const submitting = submitAll(pair, chance).finally(() => {
      isOver = true
    })
    const troubles = chanceOf(seed + 1)
    while (!isOver) {
      await trouble(pair, troubles)
      await Bun.sleep(troubles.between(500, 2000))
    }
    const { ids } = await submitting
    await quiesce(pair)

    const books = await stage.books()
    expect(filmFaults(books)).toEqual([])
    for (const name of filmVendorNames) expect(disagreements(books, stage, name)).toEqual([])
    const known = new Set(books.jobs.map(({ id }) => id))
    expect(ids.filter((id) => !known.has(id))).toEqual([])
    expect(books.jobs.filter(({ state }) => state === "completed").length).toBeGreaterThan(jobs / 5)
    for (const instance of pair.instances) instance.signal("SIGTERM")
    for (const instance of pair.instances) expect(await instance.ended).toBe(0)
    expect(await stage.reconcile()).toMatchObject({ code: 0 })
  },
  180_000,
)

test.concurrent("an instance is held for two leases with jobs in hand: the other one ends them within the first, and nothing happens twice", async () => {
  const server = await launchPostgres()
  servers.push(server)
  const stage = filmHouse(bench, { simulator, databaseUrl: await server.freshDatabase() })
  const first = await stage.start()
  const vendor = stage.vendor("kling")
  const late: Fault = { kind: "status", status: 503, delayMs: 4000 }
  vendor.behave({ kind: "video_job", queuedMs: 0, runningMs: 0, seconds: 6.5, polls: [late] })
  const wishes = Array.from({ length: 20 }, (_, number) => ({
    model: "kling" as const,
    prompt: `film ${number}`,
    duration: 5,
  }))
  await Promise.all(wishes.map((wish) => askForFilm(first.url, wish)))
  await until(() => vendor.calls.filter(({ method }) => method === "GET").length === wishes.length)
  first.signal("SIGSTOP")
  const heldAt = performance.now()
  const second = await stage.start()
  await until(async () => {
    await Bun.sleep(500)
    return (await stage.openJobs()) === 0
  }, 45_000)
  const done = await stage.books()
  await Bun.sleep(heldAt + 60_000 - performance.now())
  first.signal("SIGCONT")
  // It works again: its own looks are all behind it.
  const { body } = await askForFilm(first.url, { ...wishes[0]!, prompt: "one more" })
  await until(async () => (await stage.job(body.id!)).state === "completed", 20_000)
  const books = await stage.books()
  expect(filmFaults(books)).toEqual([])
  expect(books.jobs.filter(({ id }) => id !== body.id)).toEqual([...done.jobs])
  expect(new Set(vendor.memory.submits.values())).toEqual(new Set([1]))
  for (const instance of [first, second]) instance.signal("SIGTERM")
  for (const instance of [first, second]) expect(await instance.ended).toBe(0)
}, 120_000)
