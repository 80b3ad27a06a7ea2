import { Database } from "bun:sqlite"
import { chmodSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { StoreLockedError } from "./errors.ts"

const ownerOnly = 0o600

/**
 * Claims a data file for this process. The claim is an exclusive lock on a tiny database beside it: the operating
 * system lets go of it when the process dies, in whatever way, while backup tools can still read the data file itself.
 */
export function claimFile(file: string): () => void {
  const lockFile = `${file}.lock`
  // In a file of its own: opening the lock file just to read it would drop this process's locks on it.
  const pidFile = `${file}.pid`
  const lock = new Database(lockFile)
  try {
    chmodSync(lockFile, ownerOnly)
    // No journal file beside the lock, since nothing is ever written to it.
    lock.run("pragma journal_mode = memory")
    lock.run("begin exclusive")
    writeFileSync(pidFile, `${process.pid}\n`, { mode: ownerOnly })
  } catch (error) {
    lock.close()
    if (error instanceof Error && "code" in error && error.code === "SQLITE_BUSY") {
      throw new StoreLockedError(file, readPid(pidFile))
    }
    throw error
  }
  return () => {
    rmSync(pidFile, { force: true })
    lock.run("rollback")
    lock.close()
  }
}

function readPid(pidFile: string): number | null {
  try {
    const pid = Number(readFileSync(pidFile, "utf8"))
    return Number.isInteger(pid) && pid > 0 ? pid : null
  } catch {
    return null
  }
}
