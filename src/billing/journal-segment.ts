import { type FileHandle, open, rm } from "node:fs/promises"
import { createFile, fileIdentity, writeAt } from "../lib/durable-files.ts"
import { type Line, linesOf } from "./journal-line.ts"
import type { Slot } from "./journal-slots.ts"

/** Enough for some hundred records. */
const readAtOnce = 256 * 1024

/** A line together with its bytes, for when it must be put aside. */
export interface ReadLine extends Line {
  readonly bytes: Uint8Array
}

/** One file of the journal: written by one process at its end, read from its start, and removed as a whole. */
export class Segment {
  readonly slot: Slot
  readonly file: string
  /** Records in it that were not yet dropped. */
  waiting: number
  /** Open while it is written to, and beyond that where the file cannot be found by its name any more. */
  #handle: FileHandle | null
  readonly #identity: string | null
  /** What is on the disk for certain; anything after it belongs to nobody. */
  #length: number
  #readTo = 0
  #failed = false

  private constructor(slot: Slot, file: string, handle: FileHandle | null, length: number, waiting: number) {
    this.slot = slot
    this.file = file
    this.#handle = handle
    this.#identity = fileIdentity(file)
    this.#length = length
    this.waiting = waiting
  }

  static async create(slot: Slot): Promise<Segment> {
    const file = slot.nextFile()
    return new Segment(slot, file, await createFile(file), 0, 0)
  }

  /** One that an earlier process wrote; it is only read. */
  static existing(slot: Slot, file: string, length: number, records: number): Segment {
    return new Segment(slot, file, null, length, records)
  }

  get length(): number {
    return this.#length
  }

  /** An append to it failed, and `retire` has to come before anything else is written anywhere. */
  get hasFailed(): boolean {
    return this.#failed
  }

  get isReadToEnd(): boolean {
    return this.#readTo >= this.#length
  }

  /** Resolves when the lines are on the disk, in a file that the next process will find. */
  async append(lines: Uint8Array, records: number): Promise<void> {
    if (this.#handle === null || this.#failed) throw new Error(`${this.file} is not open for writing`)
    try {
      await writeAt(this.#handle, lines, this.#length)
      await this.#handle.datasync()
      if (!this.#isInPlace()) throw new Error(`${this.file} was taken away while it was written to`)
    } catch (error) {
      this.#failed = true
      throw error
    }
    this.#length += lines.length
    this.waiting += records
  }

  /** Ends the writing, and cuts off what a failed append may have left behind; rejects where that cannot be done yet. */
  async retire(): Promise<void> {
    if (this.#handle === null) return
    if (this.#failed) {
      await this.#handle.truncate(this.#length)
      await this.#handle.datasync()
      this.#failed = false
    }
    // An empty file that stays is taken away by the next process.
    if (this.#length === 0) await this.remove().catch(() => {})
    else if (this.#isInPlace()) await this.close()
  }

  /** The next lines, some of at most this many; none where the file ends before its time. They stay the next ones until `pass`. */
  async read(most: number): Promise<readonly ReadLine[]> {
    const handle = this.#handle ?? (await open(this.file, "r"))
    try {
      return await this.#readFrom(handle, most)
    } finally {
      if (handle !== this.#handle) await handle.close()
    }
  }

  async #readFrom(handle: FileHandle, most: number): Promise<readonly ReadLine[]> {
    const left = this.#length - this.#readTo
    for (let size = readAtOnce; ; size *= 2) {
      const buffer = Buffer.allocUnsafe(Math.min(size, left))
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, this.#readTo)
      const bytes = buffer.subarray(0, bytesRead)
      const lines = linesOf(bytes)
        .take(most)
        .map((line) => ({ ...line, bytes: bytes.subarray(line.start, line.end) }))
        .toArray()
      const last = lines.at(-1)
      if (last !== undefined || size >= left || bytesRead < buffer.length) return lines
    }
  }

  /** Goes past lines that were read; past everything where there were none. */
  pass(lines: readonly ReadLine[]): void {
    const last = lines.at(-1)
    this.#readTo = last === undefined ? this.#length : this.#readTo + last.end
  }

  /** Removes the file, unless one of that name is another process's by now. */
  async remove(): Promise<void> {
    const isRemovable = this.#isInPlace()
    await this.close()
    if (isRemovable) await rm(this.file, { force: true })
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = null
    // All that counts was on the disk before, so there is nothing that a failure here could still lose.
    await handle?.close().catch(() => {})
  }

  #isInPlace(): boolean {
    return this.#identity !== null && fileIdentity(this.file) === this.#identity && this.slot.isOurs()
  }
}
