import { open, readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import type { RequestRecord } from "../core/request-record.ts"
import { appendToFile, replaceFile } from "../lib/durable-files.ts"
import { type Line, linesOf } from "./journal-line.ts"
import { Segment } from "./journal-segment.ts"
import type { Slot } from "./journal-slots.ts"

export interface Recovered {
  readonly segment: Segment
  readonly records: readonly RequestRecord[]
}

/** Makes the files that an earlier process left readable from end to end, one by one; nothing it confirmed is lost. */
export async function* recoverSegments(slot: Slot, report: (problem: string) => void): AsyncGenerator<Recovered> {
  for (const file of slot.files) {
    const content = await readFile(file)
    const lines = [...linesOf(content)]
    const end = file === slot.files.at(-1) ? endOfConfirmed(lines) : content.length
    if (end < content.length) {
      await cutOff(file, end)
      report(`${file} ended in an unfinished record (${content.length - end} bytes), which was cut off`)
    }
    const good = lines.filter(({ record }) => record !== null)
    const kept = await keepOnly(slot, file, content.subarray(0, end), good, report)
    const records = good.map(({ record }) => record).filter((record) => record !== null)
    if (kept > 0) yield { segment: Segment.existing(slot, file, kept, records.length), records }
    else await rm(file, { force: true })
  }
}

/** A line without its newline, or one at the very end that is not intact, was being written when the process died. */
function endOfConfirmed(lines: readonly Line[]): number {
  const last = lines.at(-1)
  if (last === undefined) return 0
  return last.intact ? last.end : last.start
}

async function cutOff(file: string, length: number): Promise<void> {
  const handle = await open(file, "r+")
  try {
    await handle.truncate(length)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Moves everything but the good lines out of a file; returns how long it is then. */
async function keepOnly(
  slot: Slot,
  file: string,
  content: Buffer,
  good: readonly Line[],
  report: (problem: string) => void,
): Promise<number> {
  const kept = Buffer.concat(good.map(({ start, end }) => content.subarray(start, end)))
  if (kept.length === content.length) return kept.length
  let at = 0
  const damaged: Uint8Array[] = []
  for (const { start, end } of [...good, { start: content.length, end: content.length }]) {
    if (start > at) damaged.push(content.subarray(at, start))
    at = end
  }
  // Put aside first: a crash before the next step puts it aside twice, never not at all.
  await putAside(slot, Buffer.concat(damaged), file, report)
  await replaceFile(file, kept)
  return kept.length
}

/** Keeps bytes that are no record where the operator can look at them. */
export async function putAside(
  slot: Slot,
  bytes: Uint8Array,
  file: string,
  report: (problem: string) => void,
): Promise<void> {
  const aside = join(slot.folder, "damaged.log")
  const ended = bytes.at(-1) === 0x0a ? bytes : Buffer.concat([bytes, Buffer.from("\n")])
  await appendToFile(aside, ended)
  report(`${file} held ${bytes.length} bytes that are no record; they were moved to ${aside}`)
}
