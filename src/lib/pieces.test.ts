import { expect, test } from "bun:test"
import fc from "fast-check"
import { type Edit, spliceBytes } from "./json-bytes.ts"
import { Pieces } from "./pieces.ts"

const chunks = fc.array(fc.uint8Array({ maxLength: 30 }), { minLength: 1, maxLength: 12 })

/** Edits in order that do not overlap. */
function editsIn(size: number): fc.Arbitrary<readonly Edit[]> {
  const cuts = fc.uniqueArray(fc.nat({ max: size }), { maxLength: 6 }).map((places) => places.sort((a, b) => a - b))
  const puts = fc.array(fc.uint8Array({ maxLength: 20 }), { minLength: 3, maxLength: 3 })
  return fc.tuple(cuts, puts).map(([places, texts]) => {
    const pairs = Math.floor(places.length / 2)
    return Array.from({ length: pairs }, (_, pair) => ({
      at: { start: places[2 * pair]!, end: places[2 * pair + 1]! },
      put: texts[pair]!,
    }))
  })
}

test("pieces give the same bytes as one array, whole, in part and with edits", () => {
  const cases = chunks.chain((given) => {
    const size = given.reduce((sum, chunk) => sum + chunk.length, 0)
    return fc.tuple(fc.constant(given), editsIn(size), fc.nat({ max: size }), fc.nat({ max: size }))
  })
  fc.assert(
    fc.property(cases, ([given, edits, a, b]) => {
      const joined = Buffer.concat(given)
      const pieces = new Pieces(given)
      const [start, end] = a < b ? [a, b] : [b, a]
      expect(pieces.size).toBe(joined.length)
      expect(joined.equals(pieces.whole())).toBe(true)
      expect(joined.subarray(start, end).equals(pieces.part({ start, end }))).toBe(true)
      expect(Buffer.concat(pieces.spliced(edits)).equals(spliceBytes(joined, edits))).toBe(true)
    }),
  )
})

test("an untouched piece is handed on as it is, not copied", () => {
  const [first, second] = [new Uint8Array(5), new Uint8Array(7)]
  const parts = new Pieces([first, second]).spliced([{ at: { start: 1, end: 2 }, put: new Uint8Array(1) }])
  expect(parts.at(-1)).toBe(second)
})

test("edits that overlap or lie outside are refused", () => {
  const pieces = new Pieces([new Uint8Array(4)])
  const put = new Uint8Array()
  expect(() => pieces.spliced([{ at: { start: 2, end: 5 }, put }])).toThrow(RangeError)
  expect(() =>
    pieces.spliced([
      { at: { start: 0, end: 2 }, put },
      { at: { start: 1, end: 3 }, put },
    ]),
  ).toThrow(RangeError)
})
