import { afterEach, beforeEach, expect, test } from "bun:test"
import { appendFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { sampleRecord } from "../../test/support/request-records.ts"
import { openJournal } from "./journal.ts"
import { chargesWaiting } from "./journal-waiting.ts"

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-waiting-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const open = () => openJournal(join(folder, "journal"), () => {})
const waiting = (...posted: string[]) =>
  chargesWaiting(join(folder, "journal"), {
    async chargesAmong(references) {
      const known = posted.filter((reference) => references.includes(reference))
      return known.map((reference) => ({ id: 1n, accountId: "acme", amount: -1n, reference }))
    },
  })

test("without a journal nothing waits, and none is made", async () => {
  expect(await waiting()).toBe(0)
  expect(await Bun.file(join(folder, "journal")).exists()).toBe(false)
})

test("the charges of every process count, whether it lives or not; what is not charged does not", async () => {
  const first = await open()
  const second = await open()
  await first.append([sampleRecord("r-1", { charge: 5n }), sampleRecord("r-2", { charge: 0n })])
  await second.append([sampleRecord("r-3", { charge: 7n })])
  expect(await waiting()).toBe(2)
  await first.close()
  await second.close()
  expect(await waiting()).toBe(2)
})

test("charges that are in the books already do not wait, though their file is still there", async () => {
  const journal = await open()
  const many = Array.from({ length: 1200 }, (_, n) => sampleRecord(`r-${n}`, { charge: 1n }))
  await journal.append(many)
  await journal.peek(3)
  await journal.drop(3)
  expect(await waiting("r-0", "r-1", "r-2")).toBe(1197)
  await journal.close()
})

test("looking disturbs neither the one who writes nor a record that is not finished", async () => {
  const journal = await open()
  await journal.append([sampleRecord("r-1", { charge: 5n })])
  appendFileSync(join(folder, "journal", "0", "charges-000001.log"), "0badc0de {")
  expect(await waiting()).toBe(1)
  await journal.append([sampleRecord("r-2", { charge: 5n })])
  expect((await journal.peek(9)).map(({ id }) => id)).toEqual(["r-1", "r-2"])
  expect(await waiting()).toBe(2)
  await journal.close()
})
