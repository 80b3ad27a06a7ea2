import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { fileIdentity, makeFolder } from "../lib/durable-files.ts"
import { StoreLockedError } from "../store/errors.ts"
import { claimFile } from "../store/sqlite-lock.ts"

/** A folder of journal files that one process has for itself, for as long as it lives. */
export interface Slot {
  readonly folder: string
  /** The files it held when it was claimed, oldest first. */
  readonly files: readonly string[]
  /** A name for one more file, later than all others. */
  nextFile(): string
  /** False once the folder was taken away, or another was put in its place: another process may have that one. */
  isOurs(): boolean
  release(): void
}

const slotName = /^\d{1,6}$/
const fileName = /^charges-(\d{6,15})\.log$/

/** Claims a slot that no living process has: the one with the lowest number. */
export function claimFreeSlot(root: string): Slot {
  for (let number = 0; ; number++) {
    const slot = claimSlot(join(root, String(number)))
    if (slot !== null) return slot
  }
}

/** The folders of all slots but the own one. */
export function otherSlots(root: string, own: Slot): readonly string[] {
  return slotsIn(root).filter((folder) => folder !== own.folder)
}

/** The files of all slots, for one who only looks; none where there is no journal. */
export function journalFiles(root: string): readonly string[] {
  if (!existsSync(root)) return []
  return slotsIn(root).flatMap((folder) => filesOf(folder).map(({ file }) => file))
}

/** The files of what was set aside in all slots; some may not be there. */
export function setAsideFiles(root: string): readonly string[] {
  return existsSync(root) ? slotsIn(root).map(setAsideFile) : []
}

/** Where the slot in a folder keeps the records that the database will never take. */
export function setAsideFile(folder: string): string {
  return join(folder, "unposted.log")
}

function slotsIn(root: string): readonly string[] {
  return readdirSync(root)
    .filter((name) => slotName.test(name))
    .toSorted((a, b) => Number(a) - Number(b))
    .map((name) => join(root, name))
}

/** Claims a slot whose process is gone and which still holds files; null where there is no need to, or no way. */
export function claimAbandonedSlot(folder: string): Slot | null {
  return filesOf(folder).length > 0 ? claimSlot(folder) : null
}

/** Null where a living process has it. */
function claimSlot(folder: string): Slot | null {
  makeFolder(folder)
  const claimed = join(folder, "journal")
  const release = claim(claimed)
  if (release === null) return null
  // The lock file stays open as long as the claim, so that its identity cannot pass to another file.
  const lockFile = `${claimed}.lock`
  const lock = fileIdentity(lockFile)
  const files = filesOf(folder)
  let last = files.at(-1)?.number ?? 0
  return {
    folder,
    files: files.map(({ file }) => file),
    nextFile: () => join(folder, `charges-${String(++last).padStart(6, "0")}.log`),
    isOurs: () => lock !== null && fileIdentity(lockFile) === lock,
    release,
  }
}

function claim(file: string): (() => void) | null {
  try {
    return claimFile(file)
  } catch (error) {
    if (error instanceof StoreLockedError) return null
    throw error
  }
}

function filesOf(folder: string): readonly { readonly file: string; readonly number: number }[] {
  return readdirSync(folder)
    .flatMap((name) => {
      const number = fileName.exec(name)?.[1]
      return number === undefined ? [] : [{ file: join(folder, name), number: Number(number) }]
    })
    .toSorted((a, b) => a.number - b.number)
}
