import { expect, test } from "bun:test"
import fc from "fast-check"
import { canonicalDecimal, decimalPlaces, scaled, unscaled, wholePart } from "./decimal.ts"

test.each([
  ["0.000015", "0.000015"],
  ["1.5e-7", "0.00000015"],
  ["1.25", "1.25"],
  ["0010.500", "10.5"],
  [".5", "0.5"],
  ["5.", "5"],
  ["+3", "3"],
  ["-0.0", "0"],
  ["-2.50", "-2.5"],
  ["12E3", "12000"],
  ["1.2345e2", "123.45"],
  ["0.12345678901234567890123", "0.12345678901234567890123"],
  ["99999999999999999999", "99999999999999999999"],
])("%s is written as %s", (text, canonical) => {
  expect(canonicalDecimal(text)).toBe(canonical)
})

test.each(["", ".", "-", "e5", "1,5", "1_000", "0x10", "NaN", ".inf", "1e", "1 ", "1e999999999", "9".repeat(101)])(
  "%p is no decimal number",
  (text) => {
    expect(canonicalDecimal(text)).toBeNull()
  },
)

test("every finite JavaScript number keeps its value, and canonical text stays as it is", () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e20, max: 1e20 }), (number) => {
      const canonical = canonicalDecimal(String(number))
      fc.pre(canonical !== null)
      expect(Number(canonical)).toBe(number === 0 ? 0 : number)
      expect(canonicalDecimal(canonical as string)).toBe(canonical)
    }),
  )
})

test("places and whole part are read off the digits", () => {
  expect([decimalPlaces("12"), decimalPlaces("0.125")]).toEqual([0, 3])
  expect([wholePart("-12.5"), wholePart("0.9"), wholePart("9000000000")]).toEqual([12n, 0n, 9_000_000_000n])
})

test("a decimal becomes a whole number of its smallest places", () => {
  expect([scaled("1.25", 2), scaled("1.25", 5), scaled("12", 0), scaled("0.001", 3)]).toEqual([125n, 125_000n, 12n, 1n])
  expect(scaled("9000000000.000000000000000000000000000001", 30)).toBe(
    9_000_000_000_000_000_000_000_000_000_000_000_000_001n,
  )
})

test("a whole number of smallest places is written without needless zeros, and read it is the same again", () => {
  expect([unscaled(1_500_000n, 6), unscaled(-1n, 6), unscaled(0n, 6), unscaled(12n, 0)]).toEqual([
    "1.5",
    "-0.000001",
    "0",
    "12",
  ])
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }), fc.nat(30), (value, places) => {
      const text = unscaled(value, places)
      expect(canonicalDecimal(text)).toBe(text)
      expect(scaled(text, places)).toBe(value)
    }),
  )
})
