import { afterEach, beforeEach, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openJournal } from "../../src/billing/journal.ts"
import { sampleRecords } from "../support/request-records.ts"

let folder = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-journal-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const mostInFlight = 5

/** Lets another process append until it is killed at some moment; returns up to where it was promised its records. */
async function appendUntilKilled(first: number, atOnce: boolean): Promise<number> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "journal-writer.ts"), folder, String(first)], {
    stdout: "pipe",
    stderr: "inherit",
  })
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
  let said = atOnce ? "" : ((await reader.read()).value ?? "")
  // The moment must be any, also one before the process has begun.
  await Bun.sleep(Math.random() * (atOnce ? 150 : 30))
  child.kill("SIGKILL")
  for (let read = await reader.read(); !read.done; read = await reader.read()) said += read.value
  await child.exited
  const lines = said.split("\n").slice(0, -1)
  return Number(lines.at(-1) ?? first)
}

test("killed 30 times while it writes: all that was promised is there, in order, nothing twice, nothing invented", async () => {
  let first = 0
  let next = 0
  for (let round = 0; round < 30; round++) {
    const promised = await appendUntilKilled(next, round % 5 === 4)
    const journal = await openJournal(folder, () => {})
    const records = await journal.peek(1_000_000)
    next = first + records.length
    expect(records).toStrictEqual(sampleRecords(first, next))
    expect(next).toBeGreaterThanOrEqual(promised)
    expect(next).toBeLessThanOrEqual(promised + mostInFlight)
    expect(journal.size).toBe(records.length)
    if (round % 4 === 3) {
      await journal.drop(records.length)
      first = next
    }
    await journal.close()
  }
  expect(next).toBeGreaterThan(100)
}, 120_000)
