import { afterAll, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { askForFilm, filmFaults, filmHouse, secondCost } from "../support/film-house.ts"
import { type Instance, until, workbench } from "../support/workbench.ts"

const bench = workbench()
afterAll(() => bench.clear())

const jobs = 10_000
/** Clients at once; each holds a connection, and the gateway one more to the vendor. */
const clients = 2000

interface Seen {
  readonly films: readonly { readonly submitted: number; readonly ready: number; readonly asked: readonly number[] }[]
  readonly submits: readonly number[]
  readonly complaints: readonly string[]
}

interface BusyVendor {
  readonly url: string
  /** Ends it, and gives what it has seen. */
  seen(): Promise<Seen>
}

async function busyVendor(): Promise<BusyVendor> {
  const program = join(import.meta.dir, "busy-film-vendor.ts")
  const child = Bun.spawn([process.execPath, program], { stdin: "pipe", stdout: "pipe", stderr: "inherit" })
  const lines = linesOf(child.stdout)
  const url = (await lines.next()).value!.replace("simulator listening on ", "")
  return {
    url,
    async seen() {
      await child.stdin.end()
      return JSON.parse((await lines.next()).value!) as Seen
    },
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  let text = ""
  const decoder = new TextDecoder()
  for await (const bytes of stream) {
    text += decoder.decode(bytes, { stream: true })
    const lines = text.split("\n")
    text = lines.pop() ?? ""
    yield* lines
  }
  return undefined
}

async function submitAll(url: string): Promise<void> {
  let next = 0
  const client = async (): Promise<void> => {
    for (let number = next++; number < jobs; number = next++) {
      const { status, body } = await askForFilm(url, { model: "kling", prompt: `film ${number}`, duration: 5 })
      if (status !== 200) throw new Error(`film ${number} was answered with ${status}: ${JSON.stringify(body)}`)
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
}

function residentMegabytes({ pid }: Instance): number {
  const [, kilobytes = "0"] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? []
  return Math.round(Number(kilobytes) / 1024)
}

/** Looks are planned two seconds after the submit, and then with pauses that grow from two to fifteen, give or take a tenth. */
function plannedPause(look: number): number {
  return look === 0 ? 2000 : 0.9 * Math.min(15_000, 2000 * 1.3 ** (look - 1))
}

/** How late each look was, as a share of the pause that was planned before it. */
function latenessOf({ films }: Seen): readonly number[] {
  return films
    .flatMap(({ submitted, asked }) =>
      asked.map((at, look) => {
        const pause = at - (asked[look - 1] ?? submitted)
        return pause / plannedPause(look) - 1
      }),
    )
    .sort((a, b) => a - b)
}

async function run(): Promise<void> {
  const vendor = await busyVendor()
  const stage = filmHouse(bench, { simulator: vendor, databaseUrl: null })
  const instance = await stage.start()
  const atRest = residentMegabytes(instance)
  const began = performance.now()
  const seconds = (): string => ((performance.now() - began) / 1000).toFixed(1)
  let most = atRest
  const watch = setInterval(() => {
    most = Math.max(most, residentMegabytes(instance))
  }, 250)
  await submitAll(instance.url)
  const submitted = seconds()
  await until(async () => {
    await Bun.sleep(500)
    return (await stage.openJobs()) === 0
  }, 90_000)
  clearInterval(watch)
  const finished = seconds()
  const seen = await vendor.seen()
  const lateness = latenessOf(seen)
  const share = (part: number): number => lateness[Math.floor(part * (lateness.length - 1))]!
  console.log(
    `${jobs} jobs submitted within ${submitted} s, over after ${finished} s; ${lateness.length} looks, ` +
      `late by ${share(0.5).toFixed(2)} of their pause (median), ${share(0.99).toFixed(2)} (p99), ${share(1).toFixed(2)} (most); ` +
      `resident memory ${atRest} MB at rest, ${most} MB at most, ${residentMegabytes(instance)} MB afterwards`,
  )
  instance.signal("SIGTERM")
  expect(await instance.ended).toBe(0)

  expect(seen.complaints).toEqual([])
  expect(seen.submits.length).toBe(jobs)
  expect(seen.submits.filter((count) => count !== 1)).toEqual([])
  const books = await stage.books()
  expect(filmFaults(books)).toEqual([])
  expect(books.jobs.filter(({ state }) => state === "completed").length).toBe(jobs)
  expect(books.jobs.reduce((sum, { charge }) => sum + charge, 0n)).toBe((BigInt(jobs) * 13n * secondCost) / 2n)
  expect(share(0.99)).toBeLessThan(2)
  expect(await stage.reconcile()).toMatchObject({ code: 0 })
}

test("ten thousand jobs at once on one instance: all are looked at in time, completed and charged once", run, 180_000)
