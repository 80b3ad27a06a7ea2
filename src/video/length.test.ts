import { afterAll, expect, test } from "bun:test"
import { mp4File, mvhd } from "../../test/support/media-files.ts"
import { lengthOf } from "./length.ts"
import { resultReader } from "./result-reader.ts"

const nothing = { reported: null, sentSeconds: null }
const film = mp4File(mvhd(24_000, 121_121), { moovLast: true })
const read = (file: Buffer) => async (start: number, length: number) => file.subarray(start, start + length)
const neverRead = async (): Promise<null> => {
  throw new Error("the file was read")
}

test("what the vendor reports counts as it is, zero too, and the file is not opened", async () => {
  for (const [reported, microseconds] of [
    [5, 5_000_000],
    [5.0416667, 5_041_667],
    [0, 0],
  ] as const)
    expect(await lengthOf({ reported, sentSeconds: 9 }, neverRead)).toEqual({ microseconds, source: "reported" })
})

test("else what the file says, to the microsecond", async () => {
  // 121121 ticks of 1/24000 s: 5.046708333… s.
  expect(await lengthOf({ reported: null, sentSeconds: 5 }, read(film))).toEqual({
    microseconds: 5_046_708,
    source: "probed",
  })
})

test.each([Number.NaN, -1, Number.POSITIVE_INFINITY, 1e9])("%p is no report", async (reported) => {
  expect(await lengthOf({ reported, sentSeconds: 5 }, read(film))).toMatchObject({ source: "probed" })
})

test("else what was sent: no file, none that can be read, none that tells, one with a broken header", async () => {
  const broken = [
    mp4File(mvhd(1, 3601)),
    mp4File(mvhd(4_000_000_000, 1)),
    mp4File(mvhd(1000, 0)),
    Buffer.from("no film"),
  ]
  const reads = [null, neverRead, ...broken.map(read)]
  for (const reader of reads)
    expect(await lengthOf({ reported: null, sentSeconds: 6 }, reader)).toEqual({
      microseconds: 6_000_000,
      source: "sent",
    })
})

test("an hour is the longest that a file is believed", async () => {
  expect(await lengthOf(nothing, read(mp4File(mvhd(1, 3600))))).toEqual({
    microseconds: 3_600_000_000,
    source: "probed",
  })
})

test("nothing known is nothing", async () => {
  expect(await lengthOf(nothing, null)).toBeNull()
  expect(await lengthOf(nothing, neverRead)).toBeNull()
})

const served = { bytes: 0, asked: [] as string[] }
const gap = 50 * 1024 * 1024
const large = mp4File(mvhd(1000, 8000), { moovLast: true })
/** `/ranges` knows ranges, `/deaf` does not, `/lying` answers another part. */
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request) {
    const { pathname } = new URL(request.url)
    const range = request.headers.get("range") ?? ""
    served.asked.push(range)
    const [, start = "0", end = "0"] = /^bytes=(\d+)-(\d+)$/.exec(range) ?? []
    if (pathname === "/gone") return new Response("gone", { status: 404 })
    if (pathname === "/front") return new Response(mp4File(mvhd(1000, 8000)))
    if (pathname === "/deaf") return new Response(slowly(Buffer.concat([large.subarray(0, 30), Buffer.alloc(gap)])))
    const shift = pathname === "/lying" ? 1 : 0
    const part = large.subarray(Number(start) + shift, Number(end) + 1 + shift)
    if (part.length === 0) return new Response(null, { status: 416 })
    const from = Number(start) + shift
    return new Response(part, {
      status: 206,
      headers: { "content-range": `bytes ${from}-${from + part.length - 1}/${large.length}` },
    })
  },
})
afterAll(() => server.stop(true))

function slowly(bytes: Buffer): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream(
    {
      pull(sink) {
        if (at >= bytes.length) return sink.close()
        sink.enqueue(bytes.subarray(at, at + 65_536))
        at += 65_536
        served.bytes = at
      },
    },
    { highWaterMark: 0 },
  )
}

const overHttp = (path: string) => resultReader((range) => fetch(new URL(path, server.url), { headers: { range } }))

test("over HTTP a film is read in parts", async () => {
  served.asked.length = 0
  expect(await lengthOf(nothing, overHttp("/ranges"))).toEqual({ microseconds: 8_000_000, source: "probed" })
  expect(served.asked).toEqual(["bytes=0-65535"])
})

test("a server that ignores ranges is read as far as its head, once", async () => {
  expect(await lengthOf(nothing, overHttp("/front"))).toEqual({ microseconds: 8_000_000, source: "probed" })
  served.asked.length = 0
  expect(await lengthOf(nothing, overHttp("/deaf"))).toBeNull()
  expect(served.asked.length).toBeLessThanOrEqual(2)
  expect(served.bytes).toBeLessThan(gap / 2)
})

test("a part that is not the one asked for is none", async () => {
  expect(large.subarray(100, 105).equals((await overHttp("/ranges")(100, 5))!)).toBeTrue()
  expect(await overHttp("/lying")(100, 5)).toBeNull()
  expect(await overHttp("/front")(100, 5)).toBeNull()
  expect(await overHttp("/gone")(0, 5)).toBeNull()
})

test("where parts are not to be had, nothing is known", async () => {
  expect(await lengthOf(nothing, overHttp("/lying"))).toBeNull()
  expect(await lengthOf(nothing, overHttp("/gone"))).toBeNull()
})
