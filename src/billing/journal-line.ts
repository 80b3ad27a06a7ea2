import { z } from "zod"
import { endpoints } from "../core/endpoints.ts"
import { parseObject } from "../core/json.ts"
import { priceUnits } from "../core/price.ts"
import type { RequestRecord } from "../core/request-record.ts"
import { textOf } from "../lib/bytes.ts"

const text = z.string()
const number = z.number()
const textOrNull = text.nullable()
const numberOrNull = number.nullable()

const attempt = z.object({
  upstream: text,
  upstreamModel: text,
  why: text,
  startedAt: number,
  endedAt: numberOrNull,
  outcome: text,
  status: numberOrNull,
  detail: textOrNull,
})

const tokens = z.object({
  input: number,
  cachedInput: number,
  cacheWrite: number,
  audioInput: number,
  output: number,
  reasoning: number,
  audioOutput: number,
})

const measured = z.object({
  tokens: tokens.nullable(),
  images: numberOrNull,
  microseconds: numberOrNull,
  characters: numberOrNull,
  searchUnits: numberOrNull,
  size: textOrNull,
  quality: textOrNull,
})

const price = z.object({
  version: number,
  multiplier: text,
  units: z.partialRecord(z.enum(priceUnits), text),
})

/** A field that is added to records later needs a default here, for the journals written before. */
const written: z.ZodType<RequestRecord> = z.object({
  id: text.min(1),
  accountId: text.min(1),
  keyId: text,
  keyName: text,
  endpoint: z.enum(endpoints),
  model: text,
  upstream: textOrNull,
  upstreamModel: textOrNull,
  stream: z.boolean(),
  attempts: z.array(attempt),
  status: number,
  error: textOrNull,
  ending: z.enum(["completed", "refused", "failed", "client_gone"]),
  startedAt: number,
  endedAt: number,
  firstTokenMs: numberOrNull,
  durationMs: number,
  measured,
  estimated: z.boolean(),
  usageInvalid: z.boolean(),
  price: price.nullable(),
  charge: text.regex(/^\d{1,30}$/).transform(BigInt),
})

/** A record as JSON on one line. */
export function writeRecord(record: RequestRecord): string {
  return JSON.stringify({ ...record, charge: record.charge.toString() })
}

/** Reads what `writeRecord` wrote; null where it is no record. Fields that no record has are left out. */
export function readRecord(json: string): RequestRecord | null {
  const { success, data } = written.safeParse(parseObject(json))
  return success ? data : null
}

/** A record that the database will never take, as a line of its own file, for a person to read. */
export function writeSetAside(record: RequestRecord, why: string): string {
  return `${JSON.stringify({ why, record: JSON.parse(writeRecord(record)) })}\n`
}

/** Reads what `writeSetAside` wrote, without its newline; null where that is no record any more. */
export function readSetAside(line: string): RequestRecord | null {
  return readRecord(JSON.stringify(parseObject(line)?.record ?? null))
}

const newline = 0x0a
/** Eight hexadecimal digits and a space. */
const checksumLength = 9

/** A record as a line of the journal: checksum, JSON, newline. */
export function writeLine(record: RequestRecord): string {
  const json = writeRecord(record)
  return `${checksum(json)} ${json}\n`
}

/** A line of the journal, and where it stands in the bytes that were read. */
export interface Line {
  readonly start: number
  /** After its newline. */
  readonly end: number
  /** The checksum fits: the line is as it was written. */
  readonly intact: boolean
  /** Null for a line that is not intact, or was written by a version that knows other records. */
  readonly record: RequestRecord | null
}

/** The lines that are complete; what follows the last newline is not among them. */
export function* linesOf(bytes: Buffer): Generator<Line> {
  let start = 0
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, start)) {
    const json = bytes.subarray(Math.min(start + checksumLength, at), at)
    const intact = textOf(bytes.subarray(start, at - json.length)) === `${checksum(json)} `
    yield { start, end: at + 1, intact, record: intact ? readRecord(textOf(json)) : null }
    start = at + 1
  }
}

function checksum(json: string | Uint8Array): string {
  return Bun.hash.crc32(json).toString(16).padStart(8, "0")
}
