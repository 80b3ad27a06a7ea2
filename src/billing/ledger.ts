import { GatewayError } from "../core/errors.ts"
import type { Events } from "../core/events.ts"
import type { RequestRecord } from "../core/request-record.ts"
import { dollarsOf } from "../lib/money.ts"
import { type Balances, TooSlow, within } from "./balances.ts"
import type { Journal } from "./journal.ts"

/** Commits begin at least this far apart, so that under load many charges share one. */
const gatherMs = 3
const mostPerCommit = 256
const mostPerReplay = 1024

/** How long things may take, in milliseconds. */
export interface LedgerTimes {
  /** A commit that takes longer counts as a database that is away: its charges go to the journal, and are posted once all the same. */
  readonly mostCommit: number
  /** How long the database and the journal are left alone after a failure. */
  readonly retry: number
  /** How long a response waits for its charge to be safe somewhere; then it ends as an error, while the charge is still being tried. */
  readonly mostWait: number
}

const usualTimes: LedgerTimes = { mostCommit: 2000, retry: 500, mostWait: 10_000 }

/** Records without a charge are dropped, and counted, beyond this many that nothing could be done with. */
const mostWaiting = 20_000

/** Writes requests and their charges into the books, many at once. */
export interface Ledger {
  /**
   * Refuses an account without money, or with less than will be needed where that is known (402), and everyone while
   * charges cannot be kept (503). Answers at once where it can.
   */
  admit(accountId: string, needed?: bigint): void | Promise<void>
  /** Puts a request on record. Where it is charged, resolves when the charge is durable. */
  settle(record: RequestRecord): void | Promise<void>
  /** Resolves when everything is in the database or in the journal, or cannot be for now. */
  close(): Promise<void>
}

export interface Posted {
  /** What each account has now. */
  readonly balances: ReadonlyMap<string, bigint>
  /** Records of accounts that do not exist any more. */
  readonly orphans: readonly RequestRecord[]
}

export interface LedgerParts {
  /** Writes records in one transaction; with `mayBeKnown` those that are there already are passed over. */
  post(records: readonly RequestRecord[], options: { readonly mayBeKnown: boolean }): Promise<Posted>
  isUnavailable(error: unknown): boolean
  readonly journal: Journal
  readonly balances: Balances
  readonly events: Events
}

interface Waiting {
  readonly record: RequestRecord
  /** Null where nobody waits. */
  readonly durable: PromiseWithResolvers<void> | null
  readonly since: number
}

export function openLedger(parts: LedgerParts, times = usualTimes): Ledger {
  for (const [accountId, amount] of parts.journal.pendingByAccount()) parts.balances.charged(accountId, amount)
  return new Books(parts, times)
}

/** The one writer: takes what has gathered, in order, to the database, or to the journal while that is away. */
class Books implements Ledger {
  readonly #parts: LedgerParts
  readonly #times: LedgerTimes
  #queue: Waiting[] = []
  #working: Promise<void> | null = null
  /** The question to a database that was away whether it is back; new charges go to the journal meanwhile. */
  #asking: Promise<void> | null = null
  #timer: Timer | null = null
  #lastCommit = Number.NEGATIVE_INFINITY
  /** The database is away, by its last answer; it is asked again at this time. */
  #away = false
  #askAgainAt = Number.NEGATIVE_INFINITY
  /** It was away, and what the journal took since is not yet in it. */
  #behind = false
  /** Neither the database nor the journal took the last charges. */
  #stuck = false
  #dropped = 0

  constructor(parts: LedgerParts, times: LedgerTimes) {
    this.#parts = parts
    this.#times = times
    if (parts.journal.size > 0) this.#wake(0)
  }

  admit(accountId: string, needed = 0n): void | Promise<void> {
    if (this.#stuck) throw cannotCharge()
    const balance = this.#parts.balances.of(accountId)
    if (!(balance instanceof Promise)) return requireMoney(balance, needed)
    return balance.then((known) => requireMoney(known, needed), this.#explain)
  }

  settle(record: RequestRecord): void | Promise<void> {
    const since = performance.now()
    if (record.charge === 0n) {
      if (this.#queue.length < mostWaiting) this.#enqueue({ record, durable: null, since })
      else this.#dropped += 1
      return
    }
    this.#parts.balances.charged(record.accountId, record.charge)
    const durable = Promise.withResolvers<void>()
    this.#enqueue({ record, durable, since })
    return durable.promise
  }

  async close(): Promise<void> {
    const until = performance.now() + this.#times.mostWait
    while (this.#queue.length > 0 && performance.now() < until) {
      this.#wake(0)
      await Bun.sleep(5)
    }
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#working
    await this.#asking
    if (this.#timer !== null) clearTimeout(this.#timer)
    for (const { record, durable } of this.#queue) {
      this.#parts.events.chargeUnposted(record, "it could be kept nowhere")
      durable?.reject(cannotCharge())
    }
  }

  #enqueue(waiting: Waiting): void {
    this.#queue.push(waiting)
    if (this.#working === null && this.#timer === null) this.#wake(this.#gatherFor())
  }

  #gatherFor(): number {
    return Math.max(0, this.#lastCommit + gatherMs - performance.now())
  }

  #wake(inMs: number): void {
    if (this.#working !== null) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = setTimeout(this.#start, inMs)
  }

  readonly #start = (): void => {
    this.#timer = null
    this.#working = this.#work().finally(() => {
      this.#working = null
      this.#goOn()
    })
  }

  #goOn(): void {
    if (this.#stuck && this.#away) this.#wake(this.#times.retry)
    else if (this.#queue.length > 0) this.#wake(this.#gatherFor())
    else if (this.#parts.journal.size > 0 && this.#asking === null) this.#wake(this.#untilAsked())
  }

  #untilAsked(): number {
    return this.#away ? Math.max(0, this.#askAgainAt - performance.now()) : 0
  }

  async #work(): Promise<void> {
    const { journal } = this.#parts
    if (journal.size > 0 && this.#mayAsk()) {
      // One that hangs would hold up every response for as long as it is given to answer.
      if (this.#away) this.#ask()
      else await this.#replay()
    }
    const batch = this.#queue.splice(0, mostPerCommit)
    if (batch.length === 0) return
    this.#lastCommit = performance.now()
    // What waits in the journal was charged before this batch and goes first.
    const posted = journal.size === 0 && this.#mayAsk() && (await this.#commit(batch))
    if (!posted) await this.#keep(batch)
  }

  #mayAsk(): boolean {
    return this.#asking === null && this.#untilAsked() === 0
  }

  #ask(): void {
    this.#asking = this.#replay().finally(() => {
      this.#asking = null
      if (this.#working === null && this.#timer === null) this.#goOn()
    })
  }

  async #commit(batch: readonly Waiting[]): Promise<boolean> {
    // After a failure nobody knows whether the last commit went through, so what is there already is looked for.
    const done = await this.#post(
      batch.map(({ record }) => record),
      this.#behind || this.#stuck,
    )
    if (!done) return false
    for (const { durable } of batch) durable?.resolve()
    this.#recovered()
    return true
  }

  /** The database is away: the journal keeps the batch, or else it waits in memory. */
  async #keep(batch: Waiting[]): Promise<void> {
    try {
      await this.#parts.journal.append(batch.map(({ record }) => record))
    } catch (error) {
      this.#queue = [...batch, ...this.#queue]
      if (!this.#stuck) this.#parts.events.chargesStuck(true, messageOf(error))
      this.#stuck = true
      for (const { durable, since } of this.#queue) {
        if (performance.now() - since > this.#times.mostWait) durable?.reject(cannotCharge())
      }
      return
    }
    for (const { durable } of batch) durable?.resolve()
    if (!this.#stuck) return
    this.#stuck = false
    this.#parts.events.chargesStuck(false, "")
  }

  /** Posts the oldest records of the journal, as many as fit one commit. */
  async #replay(): Promise<void> {
    const { journal } = this.#parts
    try {
      const records = await journal.peek(mostPerReplay)
      if (!(await this.#post(records, true))) return
      await journal.drop(records.length)
      if (journal.size === 0) this.#recovered()
    } catch (error) {
      // A journal that cannot be read now is read later; meanwhile new charges queue up behind it.
      this.#lost(error)
    }
  }

  /** False where the database is away. A record that it refuses for another reason must not hold up the others. */
  async #post(records: readonly RequestRecord[], mayBeKnown: boolean): Promise<boolean> {
    const { post, isUnavailable } = this.#parts
    try {
      const posted = await within(this.#times.mostCommit, post(records, { mayBeKnown }))
      this.#away = false
      this.#took(records, posted.balances)
      for (const orphan of posted.orphans) await this.#setAside(orphan, "its account does not exist any more")
      return true
    } catch (error) {
      if (isUnavailable(error) || error instanceof TooSlow) return this.#lost(error)
      if (records.length > 1) return this.#postEach(records)
      if (!mayBeKnown) return this.#post(records, true)
      return this.#setAside(records[0]!, messageOf(error))
    }
  }

  async #postEach(records: readonly RequestRecord[]): Promise<boolean> {
    for (const [position, record] of records.entries()) {
      if (await this.#post([record], true)) continue
      // All of them will be posted again, and then those before this one must not count as having arrived twice.
      for (const { accountId, charge } of records.slice(0, position)) this.#parts.balances.charged(accountId, charge)
      return false
    }
    return true
  }

  #took(records: readonly RequestRecord[], balances: Posted["balances"]): void {
    const sums = new Map<string, bigint>()
    for (const { accountId, charge } of records) sums.set(accountId, (sums.get(accountId) ?? 0n) + charge)
    for (const [accountId, sum] of sums) {
      const balance = balances.get(accountId)
      if (balance !== undefined) this.#parts.balances.posted(accountId, sum, balance)
    }
  }

  /** What the database will never take is kept in a file of its own, for a person to look at. */
  async #setAside(record: RequestRecord, why: string): Promise<boolean> {
    this.#parts.events.chargeUnposted(record, why)
    try {
      await this.#parts.journal.setAside(record, why)
    } catch (error) {
      return this.#lost(error)
    }
    this.#parts.balances.dropped(record.accountId, record.charge)
    return true
  }

  #lost(error: unknown): false {
    if (!this.#behind) this.#parts.events.journaling(true, messageOf(error))
    this.#behind = true
    this.#away = true
    this.#askAgainAt = performance.now() + this.#times.retry
    return false
  }

  #recovered(): void {
    if (this.#behind) this.#parts.events.journaling(false, "")
    if (this.#stuck) this.#parts.events.chargesStuck(false, "")
    if (this.#dropped > 0) this.#parts.events.recordsDropped(this.#dropped)
    this.#behind = false
    this.#stuck = false
    this.#dropped = 0
  }

  readonly #explain = (error: unknown): never => {
    if (error instanceof TooSlow || this.#parts.isUnavailable(error)) throw cannotCharge(error)
    throw error
  }
}

/** Nothing is checked, charged or put on record. */
export const noLedger: Ledger = {
  admit() {},
  settle() {},
  async close() {},
}

function requireMoney(balance: bigint, needed: bigint): void {
  if (balance > 0n && balance >= needed) return
  const text =
    balance > 0n
      ? `the account's balance does not cover this request, which costs ${dollarsOf(needed)} dollars; top it up to go on`
      : "the account's balance is used up; top it up to go on"
  throw new GatewayError("insufficient_balance", text, { headers: { "x-should-retry": "false" } })
}

function cannotCharge(cause?: unknown): GatewayError {
  const text = "the gateway cannot keep its books at the moment; try again shortly"
  return new GatewayError("backend_unavailable", text, { cause })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
