import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { type FileHandle, open as openFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Journal, openJournal } from "../../src/billing/journal.ts"
import { sampleRecords } from "../support/request-records.ts"

let base = ""
let folder = ""
let problems: string[] = []
const opened: Journal[] = []
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "tollgate-journal-"))
  folder = join(base, "journal")
  problems = []
})
afterEach(async () => {
  for (const journal of opened.splice(0)) await journal.close()
  rmSync(base, { recursive: true, force: true })
})

async function open(segmentBytes?: number): Promise<Journal> {
  const journal = await openJournal(folder, (problem) => problems.push(problem), segmentBytes)
  opened.push(journal)
  return journal
}
const idsOf = async (journal: Journal) => (await journal.peek(1_000_000)).map(({ id }) => id)
const ids = (from: number, to: number) => sampleRecords(from, to).map(({ id }) => id)

/** What the next call of a file's method does instead of its work. */
async function failOnce(method: "datasync" | "truncate"): Promise<void> {
  const handle = await openFile(base, "r")
  const methods: FileHandle = Object.getPrototypeOf(handle)
  await handle.close()
  const spy = spyOn(methods, method).mockImplementationOnce(() => {
    spy.mockRestore()
    return Promise.reject(new Error(`${method} failed`))
  })
}

describe("a write that fails", () => {
  test("half-way, at the largest size a file may have: nothing of it is kept, and the next one works", async () => {
    // Blocks of 512 or 1024 bytes, as the shell counts; both are more than the first and less than the second append.
    const script = 'trap "" XFSZ; ulimit -f 40; exec "$0" "$@"'
    const writer = join(import.meta.dir, "journal-small-files.ts")
    const child = Bun.spawn(["sh", "-c", script, process.execPath, writer, folder], { stdout: "pipe" })
    const outcomes: unknown = JSON.parse(await child.stdout.text())
    expect(outcomes).toEqual(["promised", expect.stringContaining("EFBIG"), "promised"])
    expect(await idsOf(await open())).toEqual([...ids(0, 10), ...ids(200, 201)])
    expect(problems).toEqual([])
  })

  test("at the very end, when it is made durable: nothing of it is kept, and the next one works", async () => {
    const journal = await open()
    await journal.append(sampleRecords(0, 2))
    await failOnce("datasync")
    await expect(journal.append(sampleRecords(2, 5))).rejects.toThrow("datasync failed")
    expect(journal.size).toBe(2)
    await journal.append(sampleRecords(5, 6))
    expect(await idsOf(journal)).toEqual([...ids(0, 2), "r5"])
    await journal.close()
    expect(await idsOf(await open())).toEqual([...ids(0, 2), "r5"])
  })

  test("and cannot be undone at once: it is undone before anything else is written", async () => {
    const journal = await open()
    await journal.append(sampleRecords(0, 2))
    await failOnce("datasync")
    await failOnce("truncate")
    await expect(journal.append(sampleRecords(2, 5))).rejects.toThrow("datasync failed")
    await failOnce("truncate")
    await expect(journal.append(sampleRecords(5, 6))).rejects.toThrow("truncate failed")
    expect(await idsOf(journal)).toEqual(ids(0, 2))
    await journal.append(sampleRecords(6, 7))
    await journal.close()
    expect(await idsOf(await open())).toEqual([...ids(0, 2), "r6"])
  })

  test("in a new file leaves no file behind", async () => {
    const journal = await open()
    await failOnce("datasync")
    await expect(journal.append(sampleRecords(0, 1))).rejects.toThrow("datasync failed")
    expect(readdirSync(join(folder, "0")).filter((name) => name.startsWith("charges-"))).toEqual([])
  })
})

const mayMount = tryMount()
describe("a disk that is full", () => {
  test.skipIf(!mayMount)("refuses, and takes more when there is room again (needs the right to mount)", async () => {
    mkdirSync(folder)
    mount(folder, "256k")
    try {
      const journal = await open(20_000)
      let promised = 0
      const fill = async (): Promise<string> => {
        for (;;) {
          const refusal = await journal.append(sampleRecords(promised, promised + 3)).catch(String)
          if (refusal !== undefined) return refusal
          promised += 3
        }
      }
      expect(await fill()).toContain("ENOSPC")
      expect(await fill()).toContain("ENOSPC")
      expect(journal.size).toBe(promised)
      await journal.peek(60)
      await journal.drop(60)
      const before = promised
      expect(await fill()).toContain("ENOSPC")
      expect(promised).toBeGreaterThan(before)
      expect(await idsOf(journal)).toEqual(ids(60, promised))
      await journal.close()
      const again = await idsOf(await open())
      // The file that was dropped in part comes again as a whole.
      expect(again).toEqual(ids(promised - again.length, promised))
      expect(again.length).toBeGreaterThanOrEqual(promised - 60)
      await opened.at(-1)?.close()
    } finally {
      // Lazily, because after a failed expectation the journal still has files open there.
      Bun.spawnSync(["umount", "-l", folder])
    }
  })
})

function mount(where: string, size: string): boolean {
  return Bun.spawnSync(["mount", "-t", "tmpfs", "-o", `size=${size}`, "tmpfs", where]).success
}

function tryMount(): boolean {
  const where = mkdtempSync(join(tmpdir(), "tollgate-mount-"))
  const worked = mount(where, "64k")
  if (worked) Bun.spawnSync(["umount", where])
  rmSync(where, { recursive: true, force: true })
  return worked
}

describe("a folder that is taken away while it is in use", () => {
  test("the append that notices is refused, later ones work, and what waited is still shown", async () => {
    const journal = await open()
    await journal.append(sampleRecords(0, 2))
    rmSync(folder, { recursive: true })
    await expect(journal.append(sampleRecords(2, 3))).rejects.toThrow("taken away")
    await journal.append(sampleRecords(3, 4))
    expect(problems).toEqual([expect.stringContaining("taken away")])
    expect(await idsOf(journal)).toEqual([...ids(0, 2), "r3"])
    await journal.drop(3)
    expect(journal.size).toBe(0)
    await journal.append(sampleRecords(4, 5))
    await journal.close()
    expect(await idsOf(await open())).toEqual(["r4"])
  })

  test("put aside under another name: the refused append is not in it", async () => {
    const journal = await open()
    await journal.append(sampleRecords(0, 2))
    renameSync(folder, `${folder}-aside`)
    await expect(journal.append(sampleRecords(2, 3))).rejects.toThrow("taken away")
    expect(readFileSync(join(`${folder}-aside`, "0", "charges-000001.log"), "utf8")).not.toContain('"r2"')
  })

  test("a file in its place: refused until the folder can be made again", async () => {
    const journal = await open()
    await journal.append(sampleRecords(0, 1))
    rmSync(folder, { recursive: true })
    writeFileSync(folder, "in the way")
    for (let at = 1; at < 4; at++) await expect(journal.append(sampleRecords(at, at + 1))).rejects.toThrow()
    rmSync(folder)
    await journal.append(sampleRecords(4, 5))
    expect(await idsOf(journal)).toEqual(["r0", "r4"])
  })

  test("a new one that another has claimed is left to it", async () => {
    const journal = await open()
    await journal.append(sampleRecords(0, 2))
    rmSync(folder, { recursive: true })
    const other = await open()
    await other.append(sampleRecords(10, 12))
    await expect(journal.append(sampleRecords(2, 3))).rejects.toThrow("taken away")
    await journal.append(sampleRecords(3, 4))
    expect(await idsOf(journal)).toEqual([...ids(0, 2), "r3"])
    await journal.drop(2)
    expect(await idsOf(other)).toEqual(ids(10, 12))
    await journal.close()
    await other.close()
    expect(await idsOf(await open())).toEqual(["r3", "r10", "r11"])
  })

  test("its lock alone, by hand: the append that notices is refused, because another may have the slot", async () => {
    const journal = await open()
    await journal.append(sampleRecords(0, 2))
    rmSync(join(folder, "0", "journal.lock"))
    await expect(journal.append(sampleRecords(2, 3))).rejects.toThrow("taken away")
    await journal.append(sampleRecords(3, 4))
    await journal.close()
    expect(await idsOf(await open())).toEqual([...ids(0, 2), "r3"])
  })
})

describe("opening", () => {
  test("a journal cannot be opened where no folder can be made", async () => {
    writeFileSync(folder, "in the way")
    await expect(open()).rejects.toThrow()
    rmSync(folder)
    await (await open()).append(sampleRecords(0, 1))
  })

  test("a claim that fails half-way is given up", async () => {
    mkdirSync(join(folder, "0", "journal.pid"), { recursive: true })
    await expect(open()).rejects.toThrow()
    rmSync(join(folder, "0", "journal.pid"), { recursive: true })
    await open()
    expect(readdirSync(folder)).toEqual(["0"])
  })
})
