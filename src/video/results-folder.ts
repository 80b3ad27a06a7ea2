import { open, readdir, rename, rm, stat } from "node:fs/promises"
import { join } from "node:path"
import { makeFolder, syncFolder, writeAt } from "../lib/durable-files.ts"
import { nameOf, partOf, type ResultStore } from "./results.ts"

const ownerOnly = 0o600

/** Kinds of films by the ending of their file's name; the first is taken for what is none of them. */
const kinds = [
  [".mp4", "video/mp4"],
  [".webm", "video/webm"],
  [".mov", "video/quicktime"],
] as const

/** Ends the name of a copy that is being written. */
const draftEnding = ".part"

/** What a process that was killed left half written is removed after this time; others may be writing theirs. */
const draftLifeMs = 24 * 60 * 60 * 1000

/** Keeps copies as files of a folder, which instances may share. */
export async function folderResults(folder: string): Promise<ResultStore> {
  makeFolder(folder)
  await removeOldDrafts(folder)
  const fileOf = (jobId: string, ending: string): string => join(folder, nameOf(jobId) + ending)
  return {
    async put(jobId, body, type) {
      const ending = kinds.find(([, known]) => type.toLowerCase().startsWith(known))?.[0] ?? kinds[0][0]
      await writeWhole(fileOf(jobId, ending), body)
      await syncFolder(folder)
    },
    async open(jobId, range) {
      for (const [ending, type] of kinds) {
        const file = fileOf(jobId, ending)
        const found = await statOrNull(file)
        if (found === null) continue
        const kept = { size: found.size, type, etag: `"${jobId}"`, modified: found.mtime }
        return partOf(kept, range, ({ start, end }) => Bun.file(file).slice(start, end))
      }
      return null
    },
    async delete(jobId) {
      for (const [ending] of kinds) await rm(fileOf(jobId, ending), { force: true })
      await syncFolder(folder)
    },
  }
}

/** Under another name until all of it is on the disk, so that no one is ever given half a film. */
async function writeWhole(file: string, body: ReadableStream<Uint8Array>): Promise<void> {
  const draft = `${file}.${crypto.randomUUID()}${draftEnding}`
  try {
    const handle = await open(draft, "wx", ownerOnly)
    try {
      let written = 0
      for await (const chunk of body as AsyncIterable<Uint8Array>) {
        await writeAt(handle, chunk, written)
        written += chunk.length
      }
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(draft, file)
  } catch (error) {
    await body.cancel().catch(() => {})
    await rm(draft, { force: true })
    throw error
  }
}

async function removeOldDrafts(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.endsWith(draftEnding)) continue
    const found = await statOrNull(join(folder, name))
    if (found !== null && Date.now() - found.mtimeMs > draftLifeMs) await rm(join(folder, name), { force: true })
  }
}

async function statOrNull(file: string) {
  try {
    return await stat(file)
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null
    throw error
  }
}
