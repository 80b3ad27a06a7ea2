import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { mp4Box, mp4File, mvhd } from "../../../test/support/media-files.ts"
import { mediaDuration } from "./duration.ts"
import { probeSeconds } from "./mp4-probe.ts"

const empty = Buffer.alloc(0)
const ftyp = mp4Box("ftyp", Buffer.from("isom\0\0\0\0"))

/** A file of which any part can be read. */
interface Film {
  readonly size: number
  part(start: number, length: number): Buffer
}

function whole(bytes: Buffer): Film {
  return { size: bytes.length, part: (start, length) => bytes.subarray(start, start + length) }
}

/** A film with `gap` bytes of pictures between its head and its end. */
function apart(head: Buffer, gap: number, end: Buffer): Film {
  const tail = head.length + gap
  return {
    size: tail + end.length,
    part(start, length) {
      const stop = Math.min(start + length, tail + end.length)
      const bytes = Buffer.alloc(Math.max(0, stop - start))
      if (start < head.length) head.copy(bytes, 0, start)
      if (stop > tail) end.copy(bytes, Math.max(0, tail - start), Math.max(0, start - tail))
      return bytes
    },
  }
}

function boxHead(type: string, contentBytes: number): Buffer {
  const head = Buffer.alloc(16)
  head.writeUInt32BE(1)
  head.write(type, 4, "latin1")
  head.writeBigUInt64BE(BigInt(16 + contentBytes), 8)
  return head
}

interface Read {
  readonly start: number
  readonly length: number
}

async function probed(film: Film, size: number | null = null) {
  const reads: Read[] = []
  const seconds = await probeSeconds(async (start, length) => {
    reads.push({ start, length })
    return film.part(start, length)
  }, size)
  return { seconds, reads }
}

function moov(...parts: Buffer[]): Buffer {
  return mp4Box("moov", Buffer.concat(parts))
}

const mvex = (mehd: Buffer): Buffer => mp4Box("mvex", Buffer.concat([mehd, mp4Box("trex", Buffer.alloc(24))]))
const mehdShort = mp4Box("mehd", Buffer.from([0, 0, 0, 0, 0, 0, 0x1b, 0x58]))
const mehdLong = mp4Box("mehd", Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1b, 0x58]))
const mehdEmpty = mp4Box("mehd", Buffer.from([0, 0, 0, 0, 0, 0, 0, 0]))
const mehdCut = mp4Box("mehd", Buffer.from([1, 0, 0, 0, 0, 0, 0x1b, 0x58]))

describe("a film's length", () => {
  test("is found at the front in one read", async () => {
    const { seconds, reads } = await probed(whole(mp4File(mvhd(1000, 5042))))
    expect(seconds).toBe(5.042)
    expect(reads).toEqual([{ start: 0, length: 65_536 }])
  })

  test("is found behind pictures of any size in two reads", async () => {
    const gap = 5 * 2 ** 32
    const head = Buffer.concat([ftyp, mp4Box("free", Buffer.alloc(9)), boxHead("mdat", gap)])
    const { seconds, reads } = await probed(apart(head, gap, moov(mvhd(600, 4800))))
    expect(seconds).toBe(8)
    expect(reads.map(({ start }) => start)).toEqual([0, head.length + gap])
  })

  test("is found where padding and further boxes stand in between", async () => {
    const end = Buffer.concat([
      mp4Box("free", Buffer.alloc(70_000)),
      moov(mp4Box("udta", Buffer.alloc(100_000)), mvhd(90_000, 450_000)),
    ])
    const { seconds, reads } = await probed(apart(Buffer.concat([ftyp, boxHead("mdat", 300_000)]), 300_000, end))
    expect(seconds).toBe(5)
    expect(reads.length).toBeLessThanOrEqual(4)
  })

  test("is found with long numbers and in the last box of open size", async () => {
    expect(
      (await probed(whole(mp4File(mvhd(48_000, 48_000 * 60, 1), { moovLast: true, longMdat: true })))).seconds,
    ).toBe(60)
    const open = moov(mvhd(1000, 3000))
    open.writeUInt32BE(0)
    const film = whole(Buffer.concat([ftyp, open]))
    expect((await probed(film)).seconds).toBe(3)
    expect((await probed(film, film.size)).seconds).toBe(3)
  })

  test.each([
    ["short", mehdShort, 7],
    ["long", mehdLong, 7],
    ["of nothing", mehdEmpty, null],
    ["cut off", mehdCut, null],
    ["missing", empty, null],
  ])("of a film in fragments is that of its extension header, %s", async (_, mehd, expected) => {
    for (const unknown of [0, 0xffffffff]) {
      const file = Buffer.concat([
        ftyp,
        moov(mvhd(1000, unknown), mp4Box("trak", Buffer.alloc(90)), mvex(mehd)),
        mp4Box("moof", empty),
      ])
      expect((await probed(whole(file))).seconds).toBe(expected)
      expect(mediaDuration(file)).toBe(expected)
    }
  })

  test("is what a reader of the whole file finds", async () => {
    for (const file of [mp4File(mvhd(600, 900)), mp4File(mvhd(600, 901), { moovLast: true }), mp4File(mvhd(0, 900))])
      expect((await probed(whole(file))).seconds).toBe(mediaDuration(file))
  })
})

describe("a probe that finds nothing", () => {
  test("ends after four reads, however the file leads on", async () => {
    const jumps = {
      size: 2 ** 50,
      part: (_: number, length: number) =>
        Buffer.concat([boxHead("free", 10_000_000), Buffer.alloc(length)]).subarray(0, length),
    }
    const { seconds, reads } = await probed(jumps)
    expect(seconds).toBeNull()
    expect(reads).toHaveLength(4)
    expect(Math.max(...reads.map(({ length }) => length))).toBeLessThanOrEqual(256 * 1024)
  })

  test("ends at the end of a file, told or found", async () => {
    const cut = whole(mp4File(mvhd(600, 900), { moovLast: true }).subarray(0, 1500))
    expect(await probed(cut)).toEqual({ seconds: null, reads: [{ start: 0, length: 65_536 }] })
    expect(await probed(cut, 1500)).toEqual({ seconds: null, reads: [{ start: 0, length: 1500 }] })
  })

  test("does not ask again where a read failed or threw", async () => {
    const failures = [
      async () => null,
      async () => Promise.reject(new Error("reset")),
      () => {
        throw new Error("at once")
      },
    ]
    for (const failure of failures) {
      let reads = 0
      expect(
        await probeSeconds((start) => {
          reads++
          return start === 0
            ? Promise.resolve(Buffer.concat([ftyp, boxHead("mdat", 900_000), Buffer.alloc(65_536)]).subarray(0, 65_536))
            : failure()
        }, null),
      ).toBeNull()
      expect(reads).toBe(2)
      expect(await probeSeconds(failure, null)).toBeNull()
    }
  })

  test.each([
    ["nothing", empty],
    ["a page", Buffer.from("<!DOCTYPE html><html>no film here</html>")],
    ["an error", Buffer.from('{"error":"expired"}')],
    ["zeros", Buffer.alloc(90_000)],
    ["no scale", mp4File(mvhd(0, 1000))],
  ])("%s is no film", async (_, bytes) => {
    expect((await probed(whole(bytes))).seconds).toBeNull()
  })
})

test("hostile bytes do no harm: it never throws, and reads little", async () => {
  const files = [
    mp4File(mvhd(1000, 4500)),
    mp4File(mvhd(600, 900), { moovLast: true, longMdat: true }),
    Buffer.concat([ftyp, moov(mvhd(1000, 0), mvex(mehdLong))]),
  ]
  const change = fc.record({ at: fc.nat({ max: 300 }), bytes: fc.uint8Array({ maxLength: 9 }) })
  const hostile = fc.asyncProperty(
    fc.constantFrom(...files),
    fc.array(change, { maxLength: 4 }),
    fc.option(fc.nat({ max: 5000 })),
    async (file, changes, size) => {
      const changed = Buffer.from(file)
      for (const { at, bytes } of changes) Buffer.from(bytes).copy(changed, Math.min(at, changed.length))
      const { seconds, reads } = await probed(whole(changed), size)
      expect(seconds === null || seconds > 0).toBeTrue()
      expect(reads.length).toBeLessThanOrEqual(4)
    },
  )
  await fc.assert(hostile, { numRuns: 500 })
})
