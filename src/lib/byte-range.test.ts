import { expect, test } from "bun:test"
import { isSingleRange, rangeOf } from "./byte-range.ts"

test.each([
  ["bytes=0-0", 0, 1],
  ["bytes=2-5", 2, 6],
  ["BYTES=2-5", 2, 6],
  ["bytes=9-", 9, 10],
  ["bytes=9-999999999999999", 9, 10],
  ["bytes=-3", 7, 10],
  ["bytes=-10", 0, 10],
  ["bytes=-11", 0, 10],
])("%s of ten bytes", (header, start, end) => {
  expect(rangeOf(header, 10)).toEqual({ start, end, isPartial: true })
  expect(isSingleRange(header)).toBeTrue()
})

test.each(["bytes=10-", "bytes=10-12", "bytes=-0"])("%s: ten bytes have no such part", (header) => {
  expect(rangeOf(header, 10)).toBeNull()
  expect(isSingleRange(header)).toBeTrue()
})

test.each([
  "",
  "bytes",
  "bytes=",
  "bytes=-",
  "bytes=5-4",
  "bytes=1-2,4-5",
  "bytes= 1-2",
  "bytes=1-2x",
  "items=1-2",
  "bytes=--1",
  "bytes=1e3-",
  `bytes=${"9".repeat(16)}-`,
])("%p is none: the whole is meant", (header) => {
  expect(rangeOf(header, 10)).toEqual({ start: 0, end: 10, isPartial: false })
  expect(isSingleRange(header)).toBeFalse()
})

test("of an empty file there is all, but no part", () => {
  expect(rangeOf(null, 0)).toEqual({ start: 0, end: 0, isPartial: false })
  expect(rangeOf("bytes=0-", 0)).toBeNull()
  expect(rangeOf("bytes=-1", 0)).toBeNull()
})
