import { expect, test } from "bun:test"
import { type Mp4, mp4 } from "./mp4.ts"
import { picture } from "./protocols/pictures.ts"

interface Box {
  readonly type: string
  readonly start: number
  readonly end: number
}

/** The boxes that stand one after the other in a part of a file; a size that does not fit is an error. */
function boxesIn(bytes: Buffer, from: number, to: number): Box[] {
  const boxes: Box[] = []
  for (let start = from; start < to; ) {
    const end = start + bytes.readUInt32BE(start)
    if (end <= start || end > to) throw new RangeError(`a box at ${start} ends at ${end}, its parent at ${to}`)
    boxes.push({ type: bytes.toString("latin1", start + 4, start + 8), start: start + 8, end })
    start = end
  }
  return boxes
}

function find(bytes: Buffer, ...path: readonly string[]): Box {
  return path.reduce<Box>(
    (parent, type) => {
      const box = boxesIn(bytes, parent.start, parent.end).find((each) => each.type === type)
      if (box === undefined) throw new RangeError(`no ${type} in ${parent.type}`)
      return box
    },
    { type: "file", start: 0, end: bytes.length },
  )
}

function read(film: Mp4, start?: number, end?: number): Buffer {
  return Buffer.concat([...film.pieces(start, end)].map(({ bytes }) => bytes))
}

const types = (bytes: Buffer): string[] => boxesIn(bytes, 0, bytes.length).map(({ type }) => type)
const inTable = ["moov", "trak", "mdia", "minf", "stbl"]

test.each([
  ["front", ["ftyp", "moov", "mdat"]],
  ["end", ["ftyp", "mdat", "moov"]],
] as const)("the index stands at the %s, and every table leads to the picture", (moov, order) => {
  const bytes = read(mp4({ seconds: 5.041, moov }))
  expect(types(bytes)).toEqual([...order])
  const header = find(bytes, "moov", "mvhd")
  expect([bytes.readUInt32BE(header.start + 12), bytes.readUInt32BE(header.start + 16)]).toEqual([1000, 5041])
  const table = boxesIn(bytes, find(bytes, ...inTable).start, find(bytes, ...inTable).end)
  expect(table.map(({ type }) => type)).toEqual(["stsd", "stts", "stsc", "stsz", "stco"])
  const sampleAt = bytes.readUInt32BE(find(bytes, ...inTable, "stco").start + 8)
  const sampleBytes = bytes.readUInt32BE(find(bytes, ...inTable, "stsz").start + 4)
  expect(bytes.subarray(sampleAt, sampleAt + sampleBytes).equals(picture(5))).toBe(true)
  expect(bytes.readUInt32BE(find(bytes, ...inTable, "stts").start + 12)).toBe(5041)
})

test("headers of the film have the lengths that the format gives them", () => {
  const bytes = read(mp4({ seconds: 1 }))
  const sizeOf = (...path: string[]): number => find(bytes, ...path).end - find(bytes, ...path).start
  expect(sizeOf("moov", "mvhd")).toBe(100)
  expect(sizeOf("moov", "trak", "tkhd")).toBe(84)
  expect(sizeOf("moov", "trak", "mdia", "mdhd")).toBe(24)
  const entry = find(bytes, ...inTable, "stsd").start + 8
  expect(bytes.toString("latin1", entry + 4, entry + 8)).toBe("mp4v")
  // What a visual entry has before the boxes in it.
  expect(boxesIn(bytes, entry + 86, entry + bytes.readUInt32BE(entry)).map(({ type }) => type)).toEqual(["esds"])
})

test("a size that is asked for is met, though never at the cost of the film", () => {
  for (const moov of ["front", "end"] as const) {
    const bytes = read(mp4({ seconds: 2, moov, bytes: 300_001 }))
    expect(bytes.length).toBe(300_001)
    expect(types(bytes)).toContain("mdat")
  }
  expect(types(read(mp4({ seconds: 2, bytes: 1 })))).toEqual(["ftyp", "moov", "mdat"])
})

test("any part is the same bytes as in the whole, of a film that would not fit in memory too", () => {
  const film = mp4({ seconds: 2, moov: "end", bytes: 200_000 })
  const whole = read(film)
  for (const [start, end] of [
    [0, 1],
    [10, 100],
    [150, 180_000],
    [199_000, 200_000],
    [199_999, 200_000],
  ] as const) {
    expect(read(film, start, end).equals(whole.subarray(start, end))).toBe(true)
  }
  const huge = mp4({ seconds: 2, moov: "end", bytes: 4_000_000_000 })
  expect(read(huge, huge.length - 900).includes("mvhd")).toBe(true)
})
