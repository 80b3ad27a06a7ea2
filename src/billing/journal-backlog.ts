import type { RequestRecord } from "../core/request-record.ts"
import { putAside } from "./journal-recovery.ts"
import type { Segment } from "./journal-segment.ts"
import type { Slot } from "./journal-slots.ts"

export interface BacklogParts {
  report(problem: string): void
  /** Nothing in this segment waits any more, and it is gone from the disk. */
  removed(segment: Segment): void
}

interface Shown {
  readonly record: RequestRecord
  readonly segment: Segment
}

/** What waits in the journal's files, oldest first. The records stay on the disk, but for those that were shown. */
export class Backlog {
  readonly #parts: BacklogParts
  readonly #pending = new Map<string, bigint>()
  #segments: Segment[] = []
  #shown: Shown[] = []
  #size = 0

  constructor(parts: BacklogParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#size
  }

  get pending(): ReadonlyMap<string, bigint> {
    return this.#pending
  }

  get segments(): readonly Segment[] {
    return this.#segments
  }

  holds(slot: Slot): boolean {
    return this.#segments.some((segment) => segment.slot === slot)
  }

  /** These records were added to the end of a segment, which is the newest. */
  add(segment: Segment, records: readonly RequestRecord[]): void {
    if (this.#segments.at(-1) !== segment) this.#segments.push(segment)
    for (const record of records) this.#count(record, 1)
  }

  async show(most: number): Promise<readonly RequestRecord[]> {
    for (const segment of [...this.#segments]) await this.#showFrom(segment, most)
    return this.#shown.slice(0, most).map(({ record }) => record)
  }

  async drop(count: number): Promise<void> {
    if (count > this.#shown.length)
      throw new RangeError(`${this.#shown.length} records were shown, fewer than ${count}`)
    const dropped = this.#shown.splice(0, count)
    for (const { record, segment } of dropped) {
      segment.waiting--
      this.#count(record, -1)
    }
    for (const segment of new Set(dropped.map((each) => each.segment))) await this.#removeIfDone(segment)
  }

  /** Reads on in a segment until so many records are shown in all. */
  async #showFrom(segment: Segment, most: number): Promise<void> {
    while (this.#shown.length < most && !segment.isReadToEnd) {
      const lines = await readLines(segment, most - this.#shown.length)
      for (const { record, bytes } of lines)
        if (record === null) await putAside(segment.slot, bytes, segment.file, this.#parts.report)
      segment.pass(lines)
      for (const { record } of lines) if (record !== null) this.#shown.push({ record, segment })
    }
    if (segment.isReadToEnd) await this.#accountForMissing(segment)
  }

  /** A file that was damaged or removed while it waited holds less than was written to it. */
  async #accountForMissing(segment: Segment): Promise<void> {
    const shown = this.#shown.reduce((sum, each) => sum + (each.segment === segment ? 1 : 0), 0)
    const missing = segment.waiting - shown
    if (missing === 0) return
    this.#parts.report(`${segment.file} lacks ${missing} records that were written to it; they are not posted`)
    segment.waiting = shown
    this.#size -= missing
    this.#forgetSumsIfEmpty()
    await this.#removeIfDone(segment)
  }

  async #removeIfDone(segment: Segment): Promise<void> {
    if (segment.waiting > 0) return
    this.#segments = this.#segments.filter((each) => each !== segment)
    try {
      await segment.remove()
    } catch (error) {
      this.#parts.report(`${segment.file} is posted but cannot be removed: ${String(error)}`)
    }
    this.#parts.removed(segment)
  }

  #count(record: RequestRecord, change: 1 | -1): void {
    this.#size += change
    const sum = (this.#pending.get(record.accountId) ?? 0n) + record.charge * BigInt(change)
    if (sum === 0n) this.#pending.delete(record.accountId)
    else this.#pending.set(record.accountId, sum)
    this.#forgetSumsIfEmpty()
  }

  /** What became unreadable cannot be taken off the sums one by one. */
  #forgetSumsIfEmpty(): void {
    if (this.#size === 0) this.#pending.clear()
  }
}

/** None where the file is gone. */
async function readLines(segment: Segment, most: number): ReturnType<Segment["read"]> {
  try {
    return await segment.read(most)
  } catch (error) {
    if (isMissingFile(error)) return []
    throw error
  }
}

function isMissingFile(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")
}
