import type { RequestRecord } from "../core/request-record.ts"
import { mebibyte, utf8 } from "../lib/bytes.ts"
import { appendToFile } from "../lib/durable-files.ts"
import { oneAtATime } from "../lib/turns.ts"
import { Backlog } from "./journal-backlog.ts"
import { writeLine, writeSetAside } from "./journal-line.ts"
import { recoverSegments } from "./journal-recovery.ts"
import { Segment } from "./journal-segment.ts"
import { claimAbandonedSlot, claimFreeSlot, otherSlots, type Slot, setAsideFile } from "./journal-slots.ts"

/** Records that could not reach the database, kept on the local disk in the order they came. */
export interface Journal {
  /** Resolves when the records are on the disk; rejects where they cannot be, and then none of them is kept. */
  append(records: readonly RequestRecord[]): Promise<void>
  /** The oldest records not yet dropped, at most this many. */
  peek(most: number): Promise<readonly RequestRecord[]>
  /**
   * Forgets the oldest records, all of which `peek` has shown, because they are in the database now. A crash may bring
   * them back, so they must be posted in a way that a second time changes nothing.
   */
  drop(count: number): Promise<void>
  /** Keeps a record that the database will never take, and why, where the operator can look at it. */
  setAside(record: RequestRecord, why: string): Promise<void>
  /** How many records wait. */
  readonly size: number
  /** What the waiting records charge, by account; as it is at any moment, not as it was when asked. */
  pendingByAccount(): ReadonlyMap<string, bigint>
  close(): Promise<void>
}

/** Files are removed as a whole, so their size is what is read again at most after a crash. */
const mostSegmentBytes = 8 * mebibyte

/**
 * Opens the journal in a folder. Each process writes to a slot of its own there; what processes that are gone have left
 * in theirs comes first. Problems that cost nobody a record on the way to the disk are reported, not thrown.
 */
export async function openJournal(
  folder: string,
  report: (problem: string) => void,
  segmentBytes = mostSegmentBytes,
): Promise<Journal> {
  const journal = new DiskJournal(folder, report, segmentBytes)
  await journal.open()
  return journal
}

class DiskJournal implements Journal {
  readonly #folder: string
  readonly #report: (problem: string) => void
  readonly #segmentBytes: number
  readonly #inTurn = oneAtATime()
  readonly #backlog: Backlog
  /** None until one is claimed, and again when it was taken away. */
  #own: Slot | null = null
  #writing: Segment | null = null
  #isClosed = false

  constructor(folder: string, report: (problem: string) => void, segmentBytes: number) {
    this.#folder = folder
    this.#report = report
    this.#segmentBytes = segmentBytes
    this.#backlog = new Backlog({
      report,
      removed: (segment) => {
        if (this.#writing === segment) this.#writing = null
        this.#releaseIfDone(segment.slot)
      },
    })
  }

  get size(): number {
    return this.#backlog.size
  }

  pendingByAccount(): ReadonlyMap<string, bigint> {
    return this.#backlog.pending
  }

  append(records: readonly RequestRecord[]): Promise<void> {
    return this.#whileOpen(async () => {
      if (records.length > 0) await this.#write(records)
    })
  }

  peek(most: number): Promise<readonly RequestRecord[]> {
    return this.#whileOpen(() => this.#backlog.show(most))
  }

  drop(count: number): Promise<void> {
    return this.#whileOpen(() => this.#backlog.drop(count))
  }

  setAside(record: RequestRecord, why: string): Promise<void> {
    return this.#whileOpen(async () => {
      const { folder } = await this.#ownSlot()
      await appendToFile(setAsideFile(folder), utf8(writeSetAside(record, why)))
    })
  }

  close(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#isClosed) return
      this.#isClosed = true
      await this.#writing?.retire().catch(() => {})
      const { segments } = this.#backlog
      for (const segment of new Set([...segments, this.#writing])) await segment?.close()
      for (const slot of new Set([...segments.map((segment) => segment.slot), this.#own])) slot?.release()
    })
  }

  /** Claims a slot to write to, after those that others have left. */
  async open(): Promise<void> {
    try {
      const own = claimFreeSlot(this.#folder)
      this.#own = own
      for (const folder of otherSlots(this.#folder, own)) await this.#recoverAbandoned(folder)
      await this.#recover(own)
    } catch (error) {
      await this.close()
      throw error
    }
  }

  #whileOpen<T>(work: () => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      if (this.#isClosed) throw new Error("the journal is closed")
      return await work()
    })
  }

  /** What cannot be read in someone else's slot keeps nobody from working: it stays as it is for the next start. */
  async #recoverAbandoned(folder: string): Promise<void> {
    try {
      const slot = claimAbandonedSlot(folder)
      if (slot !== null) await this.#recover(slot)
    } catch (error) {
      this.#report(`the charges in ${folder} cannot be read: ${String(error)}`)
    }
  }

  async #recover(slot: Slot): Promise<void> {
    try {
      for await (const { segment, records } of recoverSegments(slot, this.#report)) this.#backlog.add(segment, records)
    } finally {
      this.#releaseIfDone(slot)
    }
  }

  async #write(records: readonly RequestRecord[]): Promise<void> {
    const segment = await this.#writable()
    try {
      await segment.append(utf8(records.map(writeLine).join("")), records.length)
    } catch (error) {
      // A disk that fails to write may fail to cut off as well; then the next append tries that again first.
      await this.#endWriting(segment).catch(() => {})
      throw error
    }
    this.#backlog.add(segment, records)
  }

  /** A file that has failed once is not written to again. */
  async #writable(): Promise<Segment> {
    const current = this.#writing
    if (current !== null && !current.hasFailed && current.length < this.#segmentBytes) return current
    if (current !== null) await this.#endWriting(current)
    this.#writing = await Segment.create(await this.#ownSlot())
    return this.#writing
  }

  async #endWriting(segment: Segment): Promise<void> {
    await segment.retire()
    this.#writing = null
  }

  async #ownSlot(): Promise<Slot> {
    const own = this.#own
    if (own?.isOurs()) return own
    this.#own = null
    if (own !== null) {
      this.#report(`${own.folder} was taken away while it was in use`)
      this.#releaseIfDone(own)
    }
    const next = claimFreeSlot(this.#folder)
    this.#own = next
    await this.#recover(next)
    return next
  }

  #releaseIfDone(slot: Slot): void {
    if (slot !== this.#own && !this.#backlog.holds(slot)) slot.release()
  }
}
