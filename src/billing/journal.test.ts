import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { sampleRecord, sampleRecords } from "../../test/support/request-records.ts"
import { type Journal, openJournal } from "./journal.ts"
import { writeLine } from "./journal-line.ts"

let folder = ""
let problems: string[] = []
const opened: Journal[] = []
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "tollgate-journal-")), "journal")
  problems = []
})
afterEach(async () => {
  for (const journal of opened.splice(0)) await journal.close()
  rmSync(join(folder, ".."), { recursive: true, force: true })
})

async function open(segmentBytes?: number): Promise<Journal> {
  const journal = await openJournal(folder, (problem) => problems.push(problem), segmentBytes)
  opened.push(journal)
  return journal
}
async function reopen(journal: Journal): Promise<Journal> {
  await journal.close()
  return await open()
}
const idsOf = async (journal: Journal, most = 1_000_000) => (await journal.peek(most)).map(({ id }) => id)
const ids = (from: number, to: number) => sampleRecords(from, to).map(({ id }) => id)
const filesIn = (slot: number) =>
  readdirSync(join(folder, String(slot)))
    .filter((name) => name.startsWith("charges-"))
    .toSorted()
const pathOf = (file: string, slot = 0) => join(folder, String(slot), file)
const firstFile = "charges-000001.log"

describe("what goes in comes out", () => {
  test("records come out as they went in, in order, until they are dropped", async () => {
    const journal = await open()
    const records = sampleRecords(0, 5)
    await journal.append(records.slice(0, 2))
    await journal.append(records.slice(2))
    expect(await journal.peek(3)).toStrictEqual(records.slice(0, 3))
    expect(await journal.peek(3)).toStrictEqual(records.slice(0, 3))
    await journal.drop(2)
    expect(await journal.peek(10)).toStrictEqual(records.slice(2))
    expect(journal.size).toBe(3)
    await journal.drop(3)
    expect(await journal.peek(10)).toEqual([])
    expect(journal.size).toBe(0)
  })

  test("appending nothing writes nothing", async () => {
    const journal = await open()
    await journal.append([])
    expect(journal.size).toBe(0)
    expect(filesIn(0)).toEqual([])
  })

  test("only what was shown can be dropped", async () => {
    const journal = await open()
    await journal.append(sampleRecords(0, 5))
    await journal.peek(2)
    await expect(journal.drop(3)).rejects.toThrow(RangeError)
    expect(await idsOf(journal)).toEqual(ids(0, 5))
  })

  test("calls that overlap take effect in the order they were made", async () => {
    const journal = await open(2000)
    const seen: string[] = []
    const all: Promise<unknown>[] = []
    for (let at = 0; at < 60; at += 2) {
      all.push(journal.append(sampleRecords(at, at + 2)))
      all.push(journal.peek(1).then((records) => seen.push(...records.map(({ id }) => id))))
      all.push(journal.drop(1))
    }
    await Promise.all(all)
    expect(seen).toEqual(ids(0, 30))
    expect(await idsOf(journal)).toEqual(ids(30, 60))
  })

  test("a record larger than what is read at once is read whole", async () => {
    const journal = await open()
    const large = sampleRecord("large", { error: "x".repeat(900_000) })
    await journal.append([sampleRecord("r0"), large, sampleRecord("r1")])
    expect(await journal.peek(5)).toStrictEqual([sampleRecord("r0"), large, sampleRecord("r1")])
  })

  test("folders and files are the owner's alone", async () => {
    const journal = await open()
    await journal.append(sampleRecords(0, 1))
    const modeOf = (path: string) => statSync(path).mode & 0o777
    expect([folder, join(folder, "0"), pathOf(firstFile)].map(modeOf)).toEqual([0o700, 0o700, 0o600])
  })

  test("a closed journal refuses everything, and can be closed again", async () => {
    const journal = await open()
    await journal.close()
    await journal.close()
    await expect(journal.append(sampleRecords(0, 1))).rejects.toThrow("closed")
    await expect(journal.peek(1)).rejects.toThrow("closed")
    await expect(journal.drop(0)).rejects.toThrow("closed")
  })
})

test("what waits is summed up by account, through drops and restarts", async () => {
  const journal = await open()
  await journal.append([
    sampleRecord("a1", { accountId: "a", charge: 5n }),
    sampleRecord("b1", { accountId: "b", charge: 70_000_000_000_000_000_001n }),
    sampleRecord("a2", { accountId: "a", charge: 7n }),
    sampleRecord("c1", { accountId: "c", charge: 0n }),
  ])
  const pending = (of: Journal) => Object.fromEntries(of.pendingByAccount())
  expect(pending(journal)).toEqual({ a: 12n, b: 70_000_000_000_000_000_001n })
  await journal.peek(1)
  await journal.drop(1)
  expect(pending(journal)).toEqual({ a: 7n, b: 70_000_000_000_000_000_001n })
  const again = await reopen(journal)
  expect(pending(again)).toEqual({ a: 12n, b: 70_000_000_000_000_000_001n })
  await again.peek(4)
  await again.drop(4)
  expect(pending(again)).toEqual({})
})

describe("files", () => {
  test("a full file is followed by another, read in order and removed when it is dropped", async () => {
    const journal = await open(2000)
    for (let at = 0; at < 12; at++) await journal.append(sampleRecords(at, at + 1))
    const before = filesIn(0)
    expect(before.length).toBeGreaterThan(2)
    expect(await idsOf(journal, 11)).toEqual(ids(0, 11))
    await journal.drop(11)
    expect(filesIn(0)).toEqual(before.slice(-1))
    await journal.peek(1)
    await journal.drop(1)
    expect(filesIn(0)).toEqual([])
    await journal.append(sampleRecords(12, 13))
    expect(await idsOf(await reopen(journal))).toEqual(["r12"])
  })

  test("after a restart the rest of a file comes again, then what is added", async () => {
    const first = await open(2000)
    await first.append(sampleRecords(0, 10))
    const second = await reopen(first)
    expect(second.size).toBe(10)
    await second.append(sampleRecords(10, 12))
    expect(await idsOf(await reopen(second))).toEqual(ids(0, 12))
    expect(problems).toEqual([])
  })

  test("more than nine files are read in the order of their numbers", async () => {
    const first = await open(1)
    for (let at = 0; at < 12; at++) await first.append(sampleRecords(at, at + 1))
    expect(await idsOf(await reopen(first))).toEqual(ids(0, 12))
  })
})

describe("what a dead process left behind", () => {
  const cases: readonly (readonly [string, (line: Buffer) => Uint8Array])[] = [
    ["half a line", (line) => line.subarray(0, line.length / 2)],
    ["a line without its newline", (line) => line.subarray(0, -1)],
    ["one byte", (line) => line.subarray(0, 1)],
    ["zeros, as after a power cut", () => new Uint8Array(5000)],
    ["a whole line that does not fit its checksum", (line) => Buffer.from(line.toString().replace("acme", "acne"))],
  ]
  test.each(cases)("%s at the very end is cut off", async (_, torn) => {
    const first = await open()
    await first.append(sampleRecords(0, 3))
    await first.close()
    const whole = readFileSync(pathOf(firstFile))
    appendFileSync(pathOf(firstFile), torn(Buffer.from(writeLine(sampleRecord("torn")))))
    const second = await open()
    expect(await idsOf(second)).toEqual(ids(0, 3))
    expect(readFileSync(pathOf(firstFile))).toEqual(whole)
    expect(problems).toEqual([expect.stringContaining("unfinished record")])
    await second.append(sampleRecords(3, 4))
    expect(await idsOf(await reopen(second))).toEqual(ids(0, 4))
    expect(readdirSync(join(folder, "0"))).not.toContain("damaged.log")
  })

  test("a damaged line elsewhere is put aside and told of, once, and the rest is used", async () => {
    const first = await open()
    await first.append(sampleRecords(0, 3))
    await first.close()
    const lines = readFileSync(pathOf(firstFile), "utf8").split("\n")
    const damaged = lines[1]!.replace("acme", "acne")
    writeFileSync(pathOf(firstFile), [lines[0], damaged, lines[2], ""].join("\n"))
    const second = await open()
    expect(await idsOf(second)).toEqual(["r0", "r2"])
    expect(second.size).toBe(2)
    expect(readFileSync(pathOf("damaged.log"), "utf8")).toBe(`${damaged}\n`)
    expect(problems).toEqual([expect.stringContaining("damaged.log")])
    const third = await reopen(second)
    expect(await idsOf(third)).toEqual(["r0", "r2"])
    expect(problems).toHaveLength(1)
    expect(readFileSync(pathOf("damaged.log"), "utf8")).toBe(`${damaged}\n`)
  })

  test("a torn end of a file that others follow is put aside, not cut off", async () => {
    const first = await open(1)
    await first.append(sampleRecords(0, 1))
    await first.append(sampleRecords(1, 2))
    await first.close()
    appendFileSync(pathOf(firstFile), "0badcafe {")
    expect(await idsOf(await open())).toEqual(ids(0, 2))
    expect(readFileSync(pathOf("damaged.log"), "utf8")).toBe("0badcafe {\n")
  })

  test("a record of another version is put aside even at the very end", async () => {
    await (await open()).close()
    const json = JSON.stringify({ id: "req_1", from: "the future" })
    const line = `${Bun.hash.crc32(json).toString(16).padStart(8, "0")} ${json}\n`
    writeFileSync(pathOf(firstFile), line)
    const journal = await open()
    expect(journal.size).toBe(0)
    expect(readFileSync(pathOf("damaged.log"), "utf8")).toBe(line)
    expect(filesIn(0)).toEqual([])
  })
})

describe("damage while it waits", () => {
  test("a line that went bad is put aside when its turn comes, and the others are shown", async () => {
    const journal = await open()
    await journal.append(sampleRecords(0, 3))
    const bytes = readFileSync(pathOf(firstFile))
    const at = bytes.indexOf('"r1"')
    bytes[at + 1] = 0x78
    writeFileSync(pathOf(firstFile), bytes)
    expect(await idsOf(journal)).toEqual(["r0", "r2"])
    expect(journal.size).toBe(2)
    expect(readFileSync(pathOf("damaged.log"), "utf8")).toContain('"x1"')
    await journal.drop(2)
    expect([journal.size, journal.pendingByAccount().size, filesIn(0).length]).toEqual([0, 0, 0])
  })

  test("a file that is gone is told of, and what comes after it is shown", async () => {
    const journal = await open(1)
    for (let at = 0; at < 4; at++) await journal.append(sampleRecords(at, at + 1))
    rmSync(pathOf("charges-000002.log"))
    expect(await idsOf(journal)).toEqual(["r0", "r2", "r3"])
    expect(problems).toEqual([expect.stringContaining("lacks 1 records")])
    expect(journal.size).toBe(3)
  })
})

describe("several at once", () => {
  test("each has a slot of its own, and what the others have is not its business", async () => {
    const [a, b] = [await open(), await open()]
    await a.append(sampleRecords(0, 2))
    await b.append(sampleRecords(2, 4))
    const c = await open()
    expect(c.size).toBe(0)
    expect([await idsOf(a), await idsOf(b)]).toEqual([ids(0, 2), ids(2, 4)])
  })

  test("what was left in other slots comes first, and the slot is free again when it is drained", async () => {
    const [a, b] = [await open(), await open()]
    await a.append(sampleRecords(2, 4))
    await b.append(sampleRecords(0, 2))
    await a.close()
    await b.close()
    const heir = await open()
    await heir.append(sampleRecords(4, 5))
    expect(await idsOf(heir)).toEqual(ids(0, 5))
    const next = await open()
    expect(next.size).toBe(0)
    await next.append(sampleRecords(9, 10))
    expect(filesIn(2)).toHaveLength(1)
    await heir.drop(2)
    expect(filesIn(1)).toEqual([])
    const third = await open()
    await third.append(sampleRecords(10, 11))
    expect(filesIn(1)).toHaveLength(1)
  })

  test("a slot that cannot be read is told of and left alone", async () => {
    await (await open()).close()
    writeFileSync(join(folder, "7"), "not a folder")
    const journal = await open()
    await journal.append(sampleRecords(0, 1))
    expect(problems).toEqual([expect.stringContaining(join(folder, "7"))])
  })
})
