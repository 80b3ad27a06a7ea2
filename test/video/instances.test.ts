import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test"
import type { RecordedCall } from "../../simulator/calls.ts"
import { type Simulator, startSimulator } from "../../simulator/simulator.ts"
import { slowStart } from "../store/engines.ts"
import {
  askForFilm,
  type FilmHouse,
  filmFaults,
  filmHouse,
  filmVendorNames,
  lastWord,
  lookForFilm,
} from "../support/film-house.ts"
import { administer, startPostgres } from "../support/postgres.ts"
import { type Instance, until, workbench } from "../support/workbench.ts"
import { kill, submitsOf } from "./one-film.ts"

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

/** Who is seen to have claimed jobs, until all of them are over. */
async function ownersUntilOver(url: string): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const jobsOf = new Map<string, Set<string>>()
  await until(async () => {
    const open: readonly { id: string; lease_owner: string | null }[] = await administer(url, (sql) =>
      sql.unsafe("select id, lease_owner from jobs where state not in ('completed', 'failed')"),
    )
    for (const { id, lease_owner: owner } of open) {
      if (owner === null) continue
      const jobs = jobsOf.get(owner) ?? new Set()
      jobsOf.set(owner, jobs.add(id))
    }
    return open.length === 0
  }, 45_000)
  return jobsOf
}

/** Calls to the same address of which one began before the other had ended. */
function overlapping(calls: readonly RecordedCall[]): readonly string[] {
  const polls = calls.filter(({ method, path }) => method === "GET" && !path.includes("/cdn/"))
  return [...Map.groupBy(polls, ({ path }) => path)].flatMap(([path, looks]) => {
    const inOrder = looks.toSorted((a, b) => a.at - b.at)
    return inOrder.some(({ at }, place) => at < (inOrder[place - 1]?.endedAt ?? 0)) ? [path] : []
  })
}

async function submitEverywhere(stage: FilmHouse, instances: readonly Instance[], each: number): Promise<string[]> {
  // Looks take a while, so that two at once would be seen.
  const slow = Array(3).fill({ kind: "status", status: 503, delayMs: 300 })
  for (const name of filmVendorNames) {
    stage.vendor(name).behave({ kind: "video_job", queuedMs: 500, runningMs: 3000, seconds: 4, polls: slow })
  }
  const wishes = filmVendorNames.flatMap((model) =>
    Array.from({ length: each }, (_, number) => ({ model, prompt: `film ${number}`, duration: 4 })),
  )
  const told = await Promise.all(
    wishes.map((wish, number) => askForFilm(instances[number % instances.length]!.url, wish)),
  )
  expect(told.filter(({ status }) => status !== 200)).toEqual([])
  return told.map(({ body }) => body.id!)
}

test("three instances share the looks at many jobs, never look at one at the same time, and charge each once", async () => {
  const url = await (await startPostgres()).freshDatabase()
  const stage = filmHouse(bench, { simulator, databaseUrl: url })
  const instances = [await stage.start(), await stage.start(), await stage.start()]
  const each = 40
  const ids = await submitEverywhere(stage, instances, each)
  const owners = await ownersUntilOver(url)

  expect(owners.size).toBe(instances.length)
  for (const jobs of owners.values()) expect(jobs.size).toBeGreaterThan(ids.length / 20)
  for (const name of filmVendorNames) {
    expect(submitsOf(stage.vendor(name))).toEqual(Array(each).fill(1))
    expect(overlapping(stage.vendor(name).calls)).toEqual([])
  }
  const books = await stage.books()
  expect(filmFaults(books)).toEqual([])
  expect(books.jobs.filter(({ state }) => state === "completed").length).toBe(ids.length)
  await Promise.all(instances.map(kill))
})

test("a hundred clients that ask three instances after one job: they all see the same end, and there is one charge", async () => {
  const url = await (await startPostgres()).freshDatabase()
  const stage = filmHouse(bench, { simulator, databaseUrl: url })
  const instances = [await stage.start(), await stage.start(), await stage.start()]
  const vendor = stage.vendor("kling")
  vendor.behave({ kind: "video_job", queuedMs: 0, runningMs: 2500, seconds: 7 })
  const { body } = await askForFilm(instances[0]!.url, { model: "kling", prompt: "one film", duration: 5 })
  const id = body.id!
  const clients = Array.from({ length: 100 }, async (_, number) => {
    const { url: place } = instances[number % instances.length]!
    const end = await lastWord(place, id)
    // The end never changes.
    expect(await lookForFilm(place, id)).toEqual(end)
    return [end.status, end.seconds]
  })
  expect(await Promise.all(clients)).toEqual(clients.map(() => ["completed", 7]))
  expect(submitsOf(vendor)).toEqual([1])
  expect(overlapping(vendor.calls)).toEqual([])
  // Callers who ask do not make the vendor be asked.
  expect(vendor.calls.length).toBeLessThan(6)
  const books = await stage.books()
  expect(filmFaults(books)).toEqual([])
  expect(books.lines.filter(({ kind }) => kind === "charge").length).toBe(1)
  await Promise.all(instances.map(kill))
})
