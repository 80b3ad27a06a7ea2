import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import { appendFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { sampleRecord } from "../../test/support/request-records.ts"
import { openJournal } from "./journal.ts"
import { chargesOutside } from "./journal-waiting.ts"

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-waiting-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const open = () => openJournal(join(folder, "journal"), () => {})
const outside = (...posted: string[]) =>
  chargesOutside(join(folder, "journal"), {
    async chargesAmong(references) {
      const known = posted.filter((reference) => references.includes(reference))
      return known.map((reference) => ({ id: 1n, accountId: "acme", amount: -1n, reference }))
    },
  })

const waiting = async (...posted: string[]) => (await outside(...posted)).waiting

test("without a journal nothing waits, and none is made", async () => {
  expect(await outside()).toEqual({ waiting: 0, setAside: 0 })
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

describe("what the database will never take", () => {
  const unposted = (slot: number) => join(folder, "journal", String(slot), "unposted.log")

  test("the charges that any process has set aside count, each once; what is not charged does not", async () => {
    const first = await open()
    const second = await open()
    await first.setAside(sampleRecord("r-1", { charge: 5n }), "no such account")
    await first.setAside(sampleRecord("r-2", { charge: 0n }), "no such account")
    for (const journal of [second, second]) await journal.setAside(sampleRecord("r-3", { charge: 7n }), "two\nlines")
    await first.close()
    await second.close()
    expect(await outside()).toEqual({ waiting: 0, setAside: 2 })
    expect(await outside("r-3")).toEqual({ waiting: 0, setAside: 1 })
  })

  test("it does not wait any more, though its file is still there", async () => {
    const journal = await open()
    await journal.append([sampleRecord("r-1", { charge: 5n }), sampleRecord("r-2", { charge: 5n })])
    await journal.setAside(sampleRecord("r-1", { charge: 5n }), "no such account")
    expect(await outside()).toEqual({ waiting: 1, setAside: 1 })
    await journal.close()
  })

  test("a line that cannot be read counts as well, one that is being written does not yet", async () => {
    const journal = await open()
    await journal.setAside(sampleRecord("r-1", { charge: 5n }), "no such account")
    appendFileSync(unposted(0), '{"why":"cut off","rec\n\n{"why":"cut o')
    expect(await outside()).toEqual({ waiting: 0, setAside: 2 })
    await journal.close()
  })
})
