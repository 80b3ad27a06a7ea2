import { expect, test } from "bun:test"
import fc from "fast-check"
import { dollarsOf, nanosOf } from "./money.ts"

test("dollars are read and written exactly", () => {
  expect(nanosOf("0.004")).toBe(4_000_000n)
  expect(nanosOf("-12.5")).toBe(-12_500_000_000n)
  expect(nanosOf("9000000000")).toBe(9_000_000_000_000_000_000n)
  expect(dollarsOf(1n)).toBe("0.000000001")
  expect(dollarsOf(-1_500_000_000n)).toBe("-1.5")
  expect(dollarsOf(0n)).toBe("0")
})

test("what is no amount of at most nine decimals is refused", () => {
  for (const text of ["", "1.", ".5", "1e3", "0.0000000001", "1,5", "--1", "NaN"])
    expect(() => nanosOf(text)).toThrow(RangeError)
})

test("any amount survives being written and read", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (nanos) => nanosOf(dollarsOf(nanos)) === nanos),
  )
})
