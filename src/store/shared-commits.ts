import { inTransaction, type Store } from "./db.ts"
import { isUnavailable } from "./errors.ts"
import type { Reader, Writer } from "./schema.ts"

/** At most so many writes share a commit. */
const mostPerCommit = 128
/** Between commits there is as much time as the last one took, this many times, so that under load others get theirs. */
const pausePerCommit = 2
/** A disk that hangs for once is no reason to wait for longer. */
const mostPauseMs = 20

/**
 * Runs a write that is one statement, and resolves when it is durable. Writes that come at the same time share a commit:
 * with SQLite each commit waits for the disk while nothing else goes on, and with Postgres a crowd of them would take all
 * connections from everyone else.
 */
export function writeTogether<T>(store: Store, work: (db: Reader) => Promise<T>): Promise<T> {
  return sharedCommits(store).add(work)
}

/** The same for work of several statements, or of many rows. With Postgres it has its locks, and so its commit, to itself. */
export function transactTogether<T>(store: Store, work: (trx: Writer) => Promise<T>): Promise<T> {
  return store.engine === "postgres" ? inTransaction(store, work) : sharedCommits(store).add(work)
}

const known = new WeakMap<Store, SharedCommits>()

function sharedCommits(store: Store): SharedCommits {
  let commits = known.get(store)
  if (commits === undefined) {
    commits = new SharedCommits(store)
    known.set(store, commits)
  }
  return commits
}

interface Piece {
  /** Does the work; gives what tells the one who waits for it, once it is durable. */
  run(trx: Writer): Promise<() => void>
  reject(error: unknown): void
}

class SharedCommits {
  readonly #store: Store
  #waiting: Piece[] = []
  /** Commits at the same time: SQLite has one connection, and Postgres' others are for everyone else. */
  readonly #most: number
  #atWork = 0
  #nextCommitAt = Number.NEGATIVE_INFINITY

  constructor(store: Store) {
    this.#store = store
    this.#most = store.engine === "postgres" ? 4 : 1
  }

  add<T>(work: (trx: Writer) => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const run = async (trx: Writer): Promise<() => void> => {
      const result = await work(trx)
      return () => resolve(result)
    }
    this.#waiting.push({ run, reject })
    if (this.#atWork < this.#most) void this.#work()
    return promise
  }

  async #work(): Promise<void> {
    this.#atWork += 1
    while (this.#waiting.length > 0) {
      const pauseMs = this.#nextCommitAt - performance.now()
      // Everyone else gets a turn in any case, because a commit goes by without one.
      await new Promise((resolve) => (pauseMs > 0 ? setTimeout(resolve, pauseMs) : setImmediate(resolve)))
      const pieces = this.#waiting.splice(0, mostPerCommit)
      if (pieces.length === 0) break
      const began = performance.now()
      await this.#commit(pieces)
      this.#nextCommitAt = performance.now() + this.#pauseAfter(performance.now() - began)
    }
    this.#atWork -= 1
  }

  /** While Postgres writes, everyone else goes on. */
  #pauseAfter(commitMs: number): number {
    return this.#store.engine === "postgres" ? 0 : Math.min(mostPauseMs, pausePerCommit * commitMs)
  }

  async #commit(pieces: readonly Piece[]): Promise<void> {
    try {
      const told = await inTransaction(this.#store, async (trx) => {
        const tell: (() => void)[] = []
        // One after the other: what one reads, the one before it has written.
        for (const { run } of pieces) tell.push(await run(trx))
        return tell
      })
      for (const tell of told) tell()
    } catch (error) {
      // One that cannot be written must not take the others with it.
      if (pieces.length > 1 && !isUnavailable(error)) for (const piece of pieces) await this.#commit([piece])
      else for (const { reject } of pieces) reject(error)
    }
  }
}
