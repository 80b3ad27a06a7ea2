import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { sampleRecord } from "../../test/support/request-records.ts"
import { endpoints } from "../core/endpoints.ts"
import { priceUnits } from "../core/price.ts"
import type { RequestRecord } from "../core/request-record.ts"
import { linesOf, readRecord, writeLine, writeRecord } from "./journal-line.ts"

const count = fc.maxSafeNat()
const text = fc.string({ unit: "binary" })
const name = fc.string({ unit: "binary", minLength: 1 })
const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null })

const attempts = fc.array(
  fc.record({
    upstream: text,
    upstreamModel: text,
    why: text,
    startedAt: count,
    endedAt: orNull(count),
    outcome: text,
    status: orNull(count),
    detail: orNull(text),
  }),
  { maxLength: 4 },
)
const measured = fc.record({
  tokens: orNull(
    fc.record({
      input: count,
      cachedInput: count,
      cacheWrite: count,
      audioInput: count,
      output: count,
      reasoning: count,
      audioOutput: count,
    }),
  ),
  images: orNull(count),
  microseconds: orNull(count),
  characters: orNull(count),
  searchUnits: orNull(count),
  size: orNull(text),
  quality: orNull(text),
})
const price = fc.record({
  version: count,
  multiplier: text,
  units: fc.array(fc.tuple(fc.constantFrom(...priceUnits), text)).map((units) => Object.fromEntries(units)),
})
const anyRecord: fc.Arbitrary<RequestRecord> = fc.record({
  id: name,
  accountId: name,
  keyId: text,
  keyName: text,
  endpoint: fc.constantFrom(...endpoints),
  model: text,
  upstream: orNull(text),
  upstreamModel: orNull(text),
  stream: fc.boolean(),
  attempts,
  status: count,
  error: orNull(text),
  ending: fc.constantFrom("completed", "refused", "failed", "client_gone"),
  startedAt: count,
  endedAt: count,
  firstTokenMs: orNull(fc.double({ min: 0.001, max: 1e9, noNaN: true })),
  durationMs: fc.double({ min: 0.001, max: 1e9, noNaN: true }),
  measured,
  estimated: fc.boolean(),
  usageInvalid: fc.boolean(),
  price: orNull(price),
  charge: fc.bigInt({ min: 0n, max: 10n ** 30n - 1n }),
})

test("any record reads as it was written", () => {
  fc.assert(fc.property(anyRecord, (record) => expect(readRecord(writeRecord(record))).toStrictEqual(record)))
})

test("lines hold their records whatever is in them, and nothing else passes for one", () => {
  fc.assert(
    fc.property(fc.array(anyRecord, { maxLength: 4 }), fc.uint8Array(), (records, tail) => {
      const rest = tail.filter((byte) => byte !== 0x0a)
      const lines = [...linesOf(Buffer.concat([Buffer.from(records.map(writeLine).join("")), rest]))]
      expect(lines.map(({ record }) => record)).toStrictEqual(records)
      expect(lines.every(({ intact }) => intact)).toBe(true)
    }),
  )
})

test("a changed byte anywhere is noticed", () => {
  const line = Buffer.from(writeLine(sampleRecord("req_1")))
  for (let at = 0; at < line.length - 1; at++) {
    const changed = Buffer.from(line)
    changed[at]! ^= 0x01
    // A byte that became a newline leaves two lines, neither of them whole.
    for (const { record, intact } of linesOf(changed)) expect([record, intact]).toEqual([null, false])
  }
})

test("empty and short lines are no records", () => {
  const lines = [...linesOf(Buffer.from("\nabc\n00000000\n00000000 \n"))]
  expect(lines.map(({ record }) => record)).toEqual([null, null, null, null])
  expect(lines.map(({ start, end }) => [start, end])).toEqual([
    [0, 1],
    [1, 5],
    [5, 14],
    [14, 24],
  ])
})

describe("what is no record is refused", () => {
  const good: Record<string, unknown> = JSON.parse(writeRecord(sampleRecord("req_1")))
  test.each([
    ["no JSON", "{"],
    ["no object", "[1]"],
    ["null", "null"],
    ["a missing field", JSON.stringify({ ...good, accountId: undefined })],
    ["an empty id", JSON.stringify({ ...good, id: "" })],
    ["a charge as a number", JSON.stringify({ ...good, charge: 5 })],
    ["a charge below zero", JSON.stringify({ ...good, charge: "-5" })],
    ["a charge that is no whole number", JSON.stringify({ ...good, charge: "1.5" })],
    ["an unknown endpoint", JSON.stringify({ ...good, endpoint: "dreams" })],
    ["a time that is text", JSON.stringify({ ...good, startedAt: "now" })],
    ["attempts of another shape", JSON.stringify({ ...good, attempts: [{}] })],
  ])("%s", (_, json) => {
    expect(readRecord(json)).toBeNull()
  })

  test("fields that no record has are left out", () => {
    expect(readRecord(JSON.stringify({ ...good, mood: "fine" }))).toStrictEqual(sampleRecord("req_1"))
  })
})

test("an intact line of another version is told from a broken one", () => {
  const json = JSON.stringify({ id: "req_1", from: "the future" })
  const crc = Bun.hash.crc32(json).toString(16).padStart(8, "0")
  expect([...linesOf(Buffer.from(`${crc} ${json}\n`))]).toMatchObject([{ intact: true, record: null }])
})
