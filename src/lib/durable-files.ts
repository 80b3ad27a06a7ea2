import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from "node:fs"
import { type FileHandle, open, rename, rm } from "node:fs/promises"
import { dirname, resolve } from "node:path"

const ownerOnly = 0o600
const ownerOnlyFolder = 0o700

/** Makes the names in a folder as durable as the files they stand for. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Makes a folder, and those above it, for the owner alone; they are on the disk when it returns. */
export function makeFolder(folder: string): void {
  const last = resolve(folder)
  const first = mkdirSync(last, { recursive: true, mode: ownerOnlyFolder })
  if (first === undefined) return
  const above = dirname(first)
  for (let at = last; ; at = dirname(at)) {
    const descriptor = openSync(at, "r")
    try {
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    if (at.length <= above.length) return
  }
}

/** A new file for reading and writing, for the owner alone; its name is on the disk when it resolves. */
export async function createFile(file: string): Promise<FileHandle> {
  const handle = await open(file, "wx+", ownerOnly)
  try {
    await syncFolder(dirname(file))
    return handle
  } catch (error) {
    await handle.close()
    await rm(file, { force: true })
    throw error
  }
}

/** Writes all of the bytes at a place in the file; the system may take them in several goes. */
export async function writeAt(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done)
    done += bytesWritten
  }
}

/** Adds to the end of a file, made if need be; on the disk when it resolves. */
export async function appendToFile(file: string, bytes: Uint8Array): Promise<void> {
  const handle = await open(file, "a", ownerOnly)
  try {
    await handle.appendFile(bytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await syncFolder(dirname(file))
}

/** Gives a file other contents: after a crash it has the old or the new ones, never a mixture. */
export async function replaceFile(file: string, bytes: Uint8Array): Promise<void> {
  const draft = `${file}.new`
  const handle = await open(draft, "w", ownerOnly)
  try {
    await writeAt(handle, bytes, 0)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(draft, file)
  await syncFolder(dirname(file))
}

/** Which file a path leads to, as long as someone has that file open; null where it leads to none. */
export function fileIdentity(file: string): string | null {
  try {
    const { dev, ino } = statSync(file, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return null
  }
}
