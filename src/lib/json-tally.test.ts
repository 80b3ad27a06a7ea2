import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { utf8 } from "./bytes.ts"
import { isDoubtful, JsonTally, type Tally, talliedValue, type Wanted } from "./json-tally.ts"

/** Reads the bytes as if they had arrived cut at these offsets. */
function tallyCut(bytes: Uint8Array, cuts: readonly number[], wanted: Wanted): Tally {
  const tally = new JsonTally(wanted)
  let from = 0
  for (const cut of [...cuts, bytes.length].sort((a, b) => a - b)) {
    // A copy that is overwritten afterwards: nothing may be read from a chunk later.
    const chunk = bytes.slice(from, cut)
    tally.push(chunk)
    chunk.fill(0)
    from = cut
  }
  return tally.end()
}

const tallyText = (text: string, wanted: Wanted): Tally => tallyCut(utf8(text), [], wanted)

describe("any JSON in any chunks", () => {
  const names = ["usage", "data", "größe", "__proto__"]
  const key = fc.oneof(fc.constantFrom(...names), fc.string())
  const documents = fc.oneof(
    { weight: 6, arbitrary: fc.dictionary(key, fc.jsonValue({ maxDepth: 3 }), { noNullPrototype: true }) },
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  )
  const write = (value: unknown, indent: number): Uint8Array => utf8(JSON.stringify(value, null, indent))

  test("kept fields say what JSON.parse says, and entries are counted", () => {
    fc.assert(
      fc.property(documents, fc.array(fc.nat(), { maxLength: 12 }), fc.nat({ max: 2 }), (document, cuts, indent) => {
        const bytes = write(document, indent)
        const places = cuts.map((cut) => cut % (bytes.length + 1))
        const tally = tallyCut(bytes, places, { keep: names })
        const counted = tallyCut(bytes, places, { keep: [], note: names })
        const parsed: unknown = JSON.parse(Buffer.from(bytes).toString())
        expect(tally.broken).toBeFalse()
        expect(tally.root === "object").toBe(typeof parsed === "object" && parsed !== null && !Array.isArray(parsed))
        for (const name of names) {
          const there = tally.root === "object" && Object.hasOwn(parsed as object, name)
          expect(tally.fields.has(name)).toBe(there)
          const value: unknown = there ? (parsed as Record<string, unknown>)[name] : undefined
          expect(talliedValue(tally, name)).toEqual(value)
          const entries = typeof value === "object" && value !== null ? Object.keys(value).length : 0
          for (const { fields } of [tally, counted]) expect(fields.get(name)?.entries ?? 0).toBe(entries)
          expect(counted.fields.get(name)?.bytes ?? null).toBeNull()
        }
      }),
      { numRuns: 500 },
    )
  })

  test("a document that stops early, or has a byte changed, is broken exactly when JSON.parse refuses it", () => {
    const changes = fc.record({ at: fc.nat(), byte: fc.constantFrom(...utf8('{}[],:"\\ 1-.e\nt\u0000')) })
    fc.assert(
      fc.property(documents, changes, fc.nat(), fc.boolean(), (document, { at, byte }, cut, stops) => {
        const whole = write(document, 0)
        const bytes = stops ? whole.subarray(0, at % whole.length) : whole.with(at % whole.length, byte)
        const { broken, fields } = tallyCut(bytes, [cut % (bytes.length + 1)], { keep: names })
        expect(broken).toBe(!isJson(bytes))
        if (broken) expect(fields.size).toBe(0)
      }),
      { numRuns: 1000 },
    )
  })
})

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(Buffer.from(bytes).toString())
    return true
  } catch {
    return false
  }
}

test("values of every kind are kept, wherever the document is cut", () => {
  const document = { a: -12.5e3, b: 7, c: 'x\\"y', d: null, e: true, f: [1, [2]], g: { h: "ü" }, i: 0 }
  const bytes = utf8(JSON.stringify(document))
  const keep = Object.keys(document)
  for (let cut = 0; cut <= bytes.length; cut++) {
    for (const cuts of [[cut], [cut, cut + 1], Array.from({ length: cut }, (_, at) => at)]) {
      const tally = tallyCut(bytes, cuts, { keep })
      expect(Object.fromEntries(keep.map((name) => [name, talliedValue(tally, name)]))).toEqual(document)
    }
  }
})

describe("limits", () => {
  const long = { text: "x".repeat(40) }
  const document = JSON.stringify({ usage: long, data: [1, 2, 3], size: "s" })
  const length = JSON.stringify(long).length

  test("a field as long as the limit is kept, a longer one is reported, however it arrives", () => {
    const bytes = utf8(document)
    for (let cut = 0; cut <= bytes.length; cut++) {
      const kept = tallyCut(bytes, [cut, cut + 3], { keep: ["usage", "size"], limit: length })
      expect(talliedValue(kept, "usage")).toEqual(long)
      expect([kept.tooLong, isDoubtful(kept)]).toEqual([[], false])
      const cropped = tallyCut(bytes, [cut, cut + 3], { keep: ["usage", "size"], limit: length - 1 })
      expect(cropped.fields.get("usage")).toMatchObject({ kind: "object", bytes: null })
      expect([cropped.tooLong, isDoubtful(cropped)]).toEqual([["usage"], true])
      expect(talliedValue(cropped, "size")).toBe("s")
    }
  })

  test("thirty megabytes of base64 in chunks: the pictures are counted and the usage behind them is read", () => {
    const picture = Buffer.from(`{"b64_json":"${"iVBORw0KGgo/+9Az".repeat(2 ** 20)}"}`)
    const tally = new JsonTally({ keep: ["usage"], note: ["data"] })
    const pieces = [utf8('{"data":['), picture, utf8(","), picture, utf8('],"usage":{"output_tokens":7}}')]
    for (const piece of pieces)
      for (let at = 0; at < piece.length; at += 65_521) tally.push(piece.subarray(at, at + 65_521))
    const told = tally.end()
    expect(told.fields.get("data")).toEqual({ kind: "array", entries: 2, bytes: null })
    expect(talliedValue(told, "usage")).toEqual({ output_tokens: 7 })
  })
})

test("a field given twice is named, and the first one is read", () => {
  const tally = tallyText('{"usage":1,"data":[1],"us\\u0061ge":2,"data":[]}', { keep: ["usage"], note: ["data"] })
  expect(talliedValue(tally, "usage")).toBe(1)
  expect(tally.fields.get("data")?.entries).toBe(1)
  expect([...tally.duplicates].sort()).toEqual(["data", "usage"])
  expect(isDoubtful(tally)).toBeTrue()
})

test("only entries of the array itself are counted", () => {
  const tally = tallyText('{"a":[9,9],"data":[[1,2],{"data":[1,2,3],"b":{}},"x",null,-1],"c":{"data":[1]}}', {
    keep: [],
    note: ["data"],
  })
  expect(tally.fields.get("data")).toEqual({ kind: "array", entries: 5, bytes: null })
  expect(tallyText('{"data":[ ]}', { keep: [], note: ["data"] }).fields.get("data")?.entries).toBe(0)
})

test("what comes after a break cannot mend it", () => {
  const tally = new JsonTally({ keep: ["usage"] })
  tally.push(utf8('{"usage":1}}'))
  tally.push(utf8("{}"))
  expect(tally.end()).toMatchObject({ broken: true, root: null })
  expect(new JsonTally({ keep: [] }).end().broken).toBeTrue()
})
