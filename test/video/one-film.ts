import { expect } from "bun:test"
import type { SimulatedVendor } from "../../simulator/vendor.ts"
import {
  askForFilm,
  type FilmHouse,
  type FilmVendorName,
  type FilmView,
  filmFaults,
  secondCost,
} from "../support/film-house.ts"
import { type Instance, until } from "../support/workbench.ts"

/** A film that is ready when it is first asked after. */
export const quick = { kind: "video_job", queuedMs: 0, runningMs: 0, seconds: 6.5 } as const
/** The same, taken by the vendor, which does not say so. */
export const held = { ...quick, headDelayMs: 600_000 } as const
const quickCost = (13n * secondCost) / 2n

const prompt = "a fox in the snow"

/** Asks without waiting for the answer, which may never come. */
export function ask(instance: Instance, model: FilmVendorName): Promise<FilmView | null> {
  return askForFilm(instance.url, { model, prompt, duration: 4 }).then(
    ({ body }) => body,
    () => null,
  )
}

/** The id of a job that was asked for and taken. */
export async function accepted(instance: Instance, model: FilmVendorName): Promise<string> {
  const { status, body } = await askForFilm(instance.url, { model, prompt, duration: 4 })
  expect({ status, state: body.status }).toEqual({ status: 200, state: "queued" })
  return body.id!
}

/** The only job of a model, which its client may never have been told of. */
export function onlyJob(stage: FilmHouse, model: FilmVendorName): Promise<string> {
  return until(async () => (await stage.books()).jobs.find((job) => job.model === model)?.id)
}

export async function kill(instance: Instance): Promise<void> {
  instance.signal("SIGKILL")
  await instance.ended
}

/** Another process on the same database; what the dead one had claimed is free, at once with SQLite and in time with Postgres. */
export async function takeOver(stage: FilmHouse): Promise<Instance> {
  if (stage.target.kind === "postgres") await stage.endLeases()
  return stage.start()
}

/** How often each job of a vendor was sent to it. */
export function submitsOf(vendor: SimulatedVendor): readonly number[] {
  return [...vendor.memory.submits.values()]
}

/** One job of a house ended so, and the books are in order. */
export async function expectEnd(stage: FilmHouse, id: string, state: "completed" | "failed"): Promise<void> {
  const books = await stage.books()
  expect(filmFaults(books)).toEqual([])
  const job = books.jobs.find((each) => each.id === id)
  const charged = books.lines.filter(({ reference }) => reference === `video_${id}`).map(({ amount }) => amount)
  expect({ state: job?.state, charged }).toEqual({ state, charged: state === "completed" ? [-quickCost] : [] })
}
