import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { joinBytes, utf8 } from "./bytes.ts"
import { type SseEvent, SseSplitter } from "./sse.ts"

type Told = Pick<SseEvent, "event" | "data">

/** The stream as the splitter tells it: events without their offsets, each event's own bytes, and all bytes passed on. */
function split(bytes: Uint8Array, cuts: readonly number[], splitter = new SseSplitter()) {
  const told: Told[] = []
  const slices: Uint8Array[] = []
  const passed: Uint8Array[] = []
  const take = (piece: { bytes: Uint8Array; events: readonly SseEvent[] }, consumed: number) => {
    passed.push(piece.bytes.subarray(0, consumed))
    for (const { start, end, event, data } of piece.events) {
      told.push({ event, data })
      slices.push(piece.bytes.subarray(start, end))
    }
  }
  let from = 0
  for (const cut of [...[...cuts].sort((a, b) => a - b), bytes.length]) {
    const piece = splitter.push(bytes.subarray(from, cut))
    take(piece, piece.consumed)
    from = cut
  }
  const rest = splitter.end()
  take(rest, rest.bytes.length)
  return { told, slices, passed: joinBytes([noBytes, ...passed]) }
}

const noBytes = new Uint8Array(0)
const everyOffset = (bytes: Uint8Array) => Array.from(bytes.keys())

/** The event stream interpretation of the HTML standard, word by word; a block without data is told as well, and so is an unended last block. */
function reference(bytes: Uint8Array): Told[] {
  const text = Buffer.from(bytes)
    .toString("utf8")
    .replace(/^\ufeff/, "")
  const lines = text.split(/\r\n|\n|\r/)
  const unended = lines.pop()!
  const told: Told[] = []
  let block: string[] = []
  const tell = () => {
    const fields = block
      .filter((line) => !line.startsWith(":"))
      .map((line) => {
        const [, name, value] = /^([^:]*)(?:: ?(.*))?$/su.exec(line)!
        return { name, value: value ?? "" }
      })
    const data = fields.filter(({ name }) => name === "data").map(({ value }) => value)
    const type = fields.findLast(({ name }) => name === "event")?.value
    told.push({ event: type || null, data: data.length === 0 ? null : data.join("\n") })
  }
  for (const line of lines) {
    if (line !== "") block.push(line)
    else if (block.length > 0) {
      tell()
      block = []
    }
  }
  if (unended !== "") block.push(unended)
  if (block.some((line) => !line.startsWith(":"))) tell()
  return told
}

const goldenLines = [
  ": opening comment, 注释",
  "",
  "event: message_start",
  'data: {"text":"日本語とคำ"}',
  "",
  "data: 😀👩‍👩‍👧 e\u0301 n\u0303",
  "data:no space",
  "data:  two spaces",
  "data",
  "data:",
  "id: 7",
  ":comment inside",
  "",
  "",
  "",
  "event: ping",
  "retry: 10",
  "",
  "event:first",
  "event: last",
  "data: a: b \ufeff:c",
  "unknown: field",
  " data: not a data line",
  "database: neither",
  "",
  "event:",
  "data: [DONE]",
  "",
]
const goldenEvents: Told[] = [
  { event: null, data: null },
  { event: "message_start", data: '{"text":"日本語とคำ"}' },
  { event: null, data: "😀👩‍👩‍👧 e\u0301 n\u0303\nno space\n two spaces\n\n" },
  { event: "ping", data: null },
  { event: "last", data: "a: b \ufeff:c" },
  { event: null, data: "[DONE]" },
]
const mixture = ["\n", "\r\n", "\r", "\r", "\r\n"]
const goldenStreams = [
  ["LF", goldenLines.map((line) => `${line}\n`).join("")],
  ["CRLF", goldenLines.map((line) => `${line}\r\n`).join("")],
  ["CR", goldenLines.map((line) => `${line}\r`).join("")],
  ["a mixture", goldenLines.map((line, i) => line + mixture[i % mixture.length]).join("")],
  [
    "LF after a byte order mark",
    `\ufeff${goldenLines
      .slice(2)
      .map((line) => `${line}\n`)
      .join("")}`,
  ],
] as const

describe("the golden stream", () => {
  test.each(goldenStreams)("with %s: the same events and bytes wherever it is cut", (name, text) => {
    const bytes = utf8(text)
    const events = name.includes("mark") ? goldenEvents.slice(1) : goldenEvents
    for (const cuts of [[], everyOffset(bytes), ...everyOffset(bytes).map((cut) => [cut])]) {
      const { told, passed } = split(bytes, cuts)
      expect(told).toEqual(events)
      expect(passed).toEqual(bytes)
    }
  })
})

describe("what is passed on when", () => {
  test("whole events in a chunk: the very same chunk, nothing kept", () => {
    const chunk = utf8("data: 1\n\nevent: e\ndata: 2\n\n")
    const piece = new SseSplitter().push(chunk)
    expect(piece.bytes).toBe(chunk)
    expect(piece.consumed).toBe(chunk.length)
    expect(piece.events).toEqual([
      { start: 0, end: 9, event: null, data: "1" },
      { start: 9, end: chunk.length, event: "e", data: "2" },
    ])
  })

  test("an unfinished event is held back until its blank line", () => {
    const splitter = new SseSplitter()
    expect(splitter.push(utf8("data: 1\n\ndata: 2\n"))).toMatchObject({ consumed: 9, events: [{ data: "1" }] })
    const piece = splitter.push(utf8("\ndata"))
    expect(Buffer.from(piece.bytes).toString()).toBe("data: 2\n\ndata")
    expect(piece).toMatchObject({ consumed: 9, events: [{ start: 0, end: 9, data: "2" }] })
  })

  test("bare blank lines go on at once without an event", () => {
    expect(new SseSplitter().push(utf8("\n\r\n\r"))).toMatchObject({ consumed: 4, events: [] })
  })

  test("CR CR at the end of a chunk ends the event at once; a LF after it is passed on with what follows", () => {
    const splitter = new SseSplitter()
    expect(splitter.push(utf8("data: 1\r\r"))).toMatchObject({ consumed: 9, events: [{ data: "1" }] })
    expect(splitter.push(noBytes)).toMatchObject({ consumed: 0, events: [] })
    expect(splitter.push(utf8("\ndata: 2\n\n"))).toMatchObject({
      consumed: 10,
      events: [{ start: 0, end: 10, data: "2" }],
    })
  })

  test("a LF alone after the CR that ended an event is passed on at once", () => {
    const splitter = new SseSplitter()
    splitter.push(utf8("data: 1\r\n\r"))
    expect(splitter.push(utf8("\n"))).toMatchObject({ consumed: 1, events: [] })
    expect(splitter.push(utf8("\n"))).toMatchObject({ consumed: 1, events: [] })
    expect(splitter.end()).toEqual({ bytes: noBytes, events: [] })
  })

  test("the kept tail is a copy: a caller may reuse its chunk, Buffer or not", () => {
    for (const chunk of [utf8("data: 1"), Buffer.from("data: 1")]) {
      const splitter = new SseSplitter()
      splitter.push(chunk)
      chunk.fill(0)
      expect(splitter.push(utf8("\n\n")).events).toMatchObject([{ data: "1" }])
    }
  })

  test("bytes handed out are not overwritten by later chunks", () => {
    const splitter = new SseSplitter()
    const seen = ["data: 1", " and a longer rest", "\n", "\ndata", ": 2\n\n", "data: 3\n\n"].map((text) => {
      const { bytes } = splitter.push(utf8(text))
      return { bytes, atFirst: Buffer.from(bytes).toString() }
    })
    for (const { bytes, atFirst } of seen) expect(Buffer.from(bytes).toString()).toBe(atFirst)
  })
})

describe("end of stream", () => {
  const atEnd = (text: string) => {
    const splitter = new SseSplitter()
    splitter.push(utf8(text))
    const { bytes, events } = splitter.end()
    return { rest: Buffer.from(bytes).toString(), events }
  }

  test.each([
    ["data: [DONE]", "[DONE]"],
    ["data: [DONE]\n", "[DONE]"],
    ["data: a\r\ndata: b\r", "a\nb"],
    ["\ufeffdata: x", "x"],
  ])("%j is a last event though no blank line ended it", (text, data) => {
    expect(atEnd(text)).toEqual({ rest: text, events: [{ start: 0, end: utf8(text).length, event: null, data }] })
  })

  test.each([": only a comment", ": comment\n: comment", "\ufeff"])(
    "%j is no event, but its bytes are passed on",
    (text) => {
      expect(atEnd(text)).toEqual({ rest: text, events: [] })
    },
  )

  test("nothing is left after a complete event", () => {
    expect(atEnd("data: 1\n\n")).toEqual({ rest: "", events: [] })
  })
})

describe("an event over the limit", () => {
  const limit = 32
  const long = `data: ${"é".repeat(40)}\ndata: more`

  test.each(["\n", "\r\n", "\r"])(
    "line end %j: it is passed on unread, its neighbours are told, wherever it is cut",
    (end) => {
      const bytes = utf8(["data: before", "", ...long.split("\n"), "", "data: after", "", ""].join(end))
      for (const cuts of [[], everyOffset(bytes), ...everyOffset(bytes).map((cut) => [cut])]) {
        const splitter = new SseSplitter(limit)
        const { told, passed } = split(bytes, cuts, splitter)
        expect(told.map(({ data }) => data)).toEqual(["before", "after"])
        expect(passed).toEqual(bytes)
        expect(splitter.overflowed).toBe(true)
      }
    },
  )

  test("from the limit to the next blank line nothing is held back", () => {
    const splitter = new SseSplitter(limit)
    expect(splitter.push(utf8("data: 0123456789"))).toMatchObject({ consumed: 0 })
    expect(splitter.overflowed).toBe(false)
    expect(splitter.push(utf8("0123456789012345678"))).toMatchObject({ consumed: 35, events: [] })
    expect(splitter.overflowed).toBe(true)
    expect(splitter.push(utf8("\ndata: x"))).toMatchObject({ consumed: 8, events: [] })
    expect(splitter.push(utf8("\n\ndata: y"))).toMatchObject({ consumed: 2, events: [] })
    expect(splitter.push(utf8("\n\n"))).toMatchObject({ consumed: 9, events: [{ data: "y" }] })
  })

  test("an event of exactly the limit is told", () => {
    const splitter = new SseSplitter(limit)
    expect(splitter.push(utf8(`data: ${"x".repeat(limit - 8)}\n\n`)).events).toHaveLength(1)
    expect(splitter.overflowed).toBe(false)
  })

  test("a stream that ends inside it has no last event", () => {
    const splitter = new SseSplitter(limit)
    const { told, passed } = split(utf8(long), [5, 50], splitter)
    expect(told).toEqual([])
    expect(passed).toEqual(utf8(long))
  })
})

describe("any lines", () => {
  const line = fc.oneof(
    fc.constantFrom("", "", "", ":", ": ping", "data", "data:", "data: ", "data:  x", "data: 日本😀", "data:a:b"),
    fc.constantFrom("event: e", "event", "event:", "id: 1", "retry: 3", "datas: 1", "dat", " data: 1", ":data: 1", "é"),
    fc.string({ unit: "grapheme", maxLength: 8 }).map((text) => `data: ${text.replaceAll("\ufeff", "")}`),
  )
  const soup = fc
    .tuple(
      fc.constantFrom("", "", "\ufeff"),
      fc.array(fc.tuple(line, fc.constantFrom("\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n")), { maxLength: 20 }),
      line,
    )
    .map(([mark, lines, last]) => utf8(mark + lines.flat().join("") + last))

  test("are told as the standard's algorithm tells them, and pass on byte by byte", () => {
    fc.assert(
      fc.property(soup, fc.array(fc.nat(), { maxLength: 10 }), (bytes, places) => {
        const { told, slices, passed } = split(
          bytes,
          places.map((place) => place % (bytes.length + 1)),
        )
        expect(told).toEqual(reference(bytes))
        expect(passed).toEqual(bytes)
        expect(slices.flatMap(reference)).toEqual(told)
      }),
      { numRuns: 1000 },
    )
  })
})
