import { readFile } from "node:fs/promises"
import type { Books } from "../store/reconcile-reads.ts"
import { rowsAtOnce } from "./differences.ts"
import { linesOf } from "./journal-line.ts"
import { journalFiles } from "./journal-slots.ts"

/**
 * How many charges wait in a journal's folder, whichever processes have it. Files go as a whole, so those that the
 * books have already are not counted.
 */
export async function chargesWaiting(folder: string, books: Pick<Books, "chargesAmong">): Promise<number> {
  let waiting = 0
  for (const file of journalFiles(folder)) {
    const ids = await chargesIn(file)
    for (let at = 0; at < ids.length; at += rowsAtOnce) {
      const some = ids.slice(at, at + rowsAtOnce)
      const posted = new Set((await books.chargesAmong(some)).map(({ reference }) => reference))
      waiting += some.filter((id) => !posted.has(id)).length
    }
  }
  return waiting
}

async function chargesIn(file: string): Promise<readonly string[]> {
  let content: Buffer
  try {
    content = await readFile(file)
  } catch (error) {
    // Posted and removed at this very moment.
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return []
    throw error
  }
  return [...linesOf(content)].flatMap(({ record }) => (record !== null && record.charge > 0n ? [record.id] : []))
}
