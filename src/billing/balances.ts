/** How old a balance may be at most, for charges that other instances have made meanwhile. */
const freshMs = 900

/** How long a read may take, and how long the database is left alone after one that failed. */
const mostReadMs = 1000
const pauseMs = 1000

/** Above this many accounts those with nothing on its way are forgotten. */
const mostKept = 50_000

/**
 * What accounts have, as far as this instance can know: its own charges count from the moment they are made, those of
 * others within a second. While the database is away the last that was known stands, less this instance's own charges.
 */
export interface Balances {
  /** Answers at once for an account that was seen a moment ago. */
  of(accountId: string): bigint | Promise<bigint>
  /** A charge was made and is on its way to the database. */
  charged(accountId: string, amount: bigint): void
  /** Charges of this sum are in the database now, which left this balance. */
  posted(accountId: string, amount: bigint, balance: bigint): void
  /** A charge that was made will never be in the database. */
  dropped(accountId: string, amount: bigint): void
  /** The account's next balance is read anew, because something but a charge has changed it. */
  forget(accountId: string): void
}

interface Known {
  /** What the database said last; null: it was never asked, or its word no longer holds. */
  inDatabase: bigint | null
  readAt: number
  /** Charges that the database does not have yet. */
  onTheWay: bigint
  /** Grows with each posting, so that a read begun before one does not undo it. */
  postings: number
}

type Read = (accountIds: readonly string[]) => Promise<ReadonlyMap<string, bigint>>

export function openBalances(read: Read, now: () => number = () => performance.now()): Balances {
  const accounts = new Map<string, Known>()
  let asked: Map<string, PromiseWithResolvers<bigint>> | null = null
  /** The last read failed: until one succeeds nobody waits who need not. The next is made at this time. */
  let readAgainAt: number | null = null

  return {
    of(accountId) {
      const known = accounts.get(accountId)
      if (known !== undefined && known.inDatabase !== null) {
        const time = now()
        const last = known.inDatabase - known.onTheWay
        if (time - known.readAt < freshMs) return last
        if (readAgainAt !== null) {
          if (time >= readAgainAt) readAside(accountId, time)
          return last
        }
      }
      return askFor(accountId)
    },
    charged(accountId, amount) {
      accountOf(accountId).onTheWay += amount
    },
    posted(accountId, amount, balance) {
      const known = accountOf(accountId)
      known.onTheWay -= amount
      known.inDatabase = balance
      known.readAt = now()
      known.postings += 1
    },
    dropped(accountId, amount) {
      accountOf(accountId).onTheWay -= amount
    },
    forget(accountId) {
      const known = accounts.get(accountId)
      if (known === undefined) return
      known.readAt = Number.NEGATIVE_INFINITY
    },
  }

  function accountOf(accountId: string): Known {
    let known = accounts.get(accountId)
    if (known === undefined) {
      if (accounts.size >= mostKept) forgetIdle()
      known = { inDatabase: null, readAt: Number.NEGATIVE_INFINITY, onTheWay: 0n, postings: 0 }
      accounts.set(accountId, known)
    }
    return known
  }

  function forgetIdle(): void {
    for (const [id, { onTheWay }] of accounts) if (onTheWay === 0n) accounts.delete(id)
  }

  /** Everyone who asks in the same turn is answered by one read. */
  function askFor(accountId: string): Promise<bigint> {
    if (asked === null) {
      asked = new Map()
      setImmediate(readAsked)
    }
    let waiting = asked.get(accountId)
    if (waiting === undefined) {
      waiting = Promise.withResolvers<bigint>()
      asked.set(accountId, waiting)
    }
    return waiting.promise
  }

  function readAside(accountId: string, time: number): void {
    readAgainAt = time + mostReadMs + pauseMs
    void askFor(accountId)
  }

  async function readAsked(): Promise<void> {
    const waiting = asked ?? new Map<string, PromiseWithResolvers<bigint>>()
    asked = null
    const ids = [...waiting.keys()]
    const before = new Map(ids.map((id) => [id, accountOf(id).postings]))
    try {
      const balances = await within(mostReadMs, read(ids))
      readAgainAt = null
      for (const [id, { resolve }] of waiting) {
        const known = accountOf(id)
        // Charges on their way may or may not be in what was read; their posting will tell the balance itself in a moment.
        const settled = known.postings === before.get(id) && known.onTheWay === 0n
        if (settled || known.inDatabase === null) known.inDatabase = balances.get(id) ?? 0n
        known.readAt = now()
        resolve(known.inDatabase - known.onTheWay)
      }
    } catch (error) {
      readAgainAt = now() + pauseMs
      for (const [id, { resolve, reject }] of waiting) {
        const { inDatabase, onTheWay } = accountOf(id)
        if (inDatabase === null) reject(error)
        else resolve(inDatabase - onTheWay)
      }
    }
  }
}

/** The database did not answer in time. */
export class TooSlow extends Error {
  constructor(ms: number) {
    super(`the database did not answer within ${ms} ms`)
    this.name = "TooSlow"
  }
}

export function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new TooSlow(ms)), ms)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
