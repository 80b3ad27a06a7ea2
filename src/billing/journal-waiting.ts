import { readFile } from "node:fs/promises"
import { textOf } from "../lib/bytes.ts"
import type { Books } from "../store/reconcile-reads.ts"
import { rowsAtOnce } from "./differences.ts"
import { linesOf, readSetAside } from "./journal-line.ts"
import { journalFiles, setAsideFiles } from "./journal-slots.ts"

type PostedCharges = Pick<Books, "chargesAmong">

/** The charges in a journal's folder that the books do not have. */
export interface ChargesOutside {
  /** Will be posted. */
  readonly waiting: number
  /** Will never be posted by themselves. */
  readonly setAside: number
}

/**
 * Counts the charges in a journal's folder, whichever processes have it. Files go as a whole, so those of a file that
 * the books have already, or that were set aside, do not wait.
 */
export async function chargesOutside(folder: string, books: PostedCharges): Promise<ChargesOutside> {
  const setAside = await chargesSetAside(folder)
  let waiting = 0
  for (const file of journalFiles(folder)) {
    const ids = chargesIn(await contentOf(file)).filter((id) => !setAside.has(id))
    waiting += await countUnposted(ids, books)
  }
  return { waiting, setAside: await countUnposted([...setAside], books) }
}

async function countUnposted(ids: readonly string[], books: PostedCharges): Promise<number> {
  let unposted = 0
  for (let at = 0; at < ids.length; at += rowsAtOnce) {
    const some = ids.slice(at, at + rowsAtOnce)
    const posted = new Set((await books.chargesAmong(some)).map(({ reference }) => reference))
    unposted += some.filter((id) => !posted.has(id)).length
  }
  return unposted
}

/** A file that is not there holds nothing: posted and removed at this very moment, or never made. */
async function contentOf(file: string): Promise<Buffer> {
  try {
    return await readFile(file)
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return Buffer.alloc(0)
    throw error
  }
}

function chargesIn(content: Buffer): readonly string[] {
  return [...linesOf(content)].flatMap(({ record }) => (record !== null && record.charge > 0n ? [record.id] : []))
}

/**
 * The ids of charges, each once: a crash may have had one set aside again. A line that cannot be read stands for itself,
 * because it needs a person all the more.
 */
async function chargesSetAside(folder: string): Promise<ReadonlySet<string>> {
  const found = new Set<string>()
  for (const file of setAsideFiles(folder)) {
    // What follows the last newline is still being written.
    for (const line of textOf(await contentOf(file))
      .split("\n")
      .slice(0, -1)) {
      const record = readSetAside(line)
      if (record?.charge !== 0n && line !== "") found.add(record?.id ?? line)
    }
  }
  return found
}
