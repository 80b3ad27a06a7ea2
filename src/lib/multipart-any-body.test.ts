import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { utf8 } from "./bytes.ts"
import { type Span, spliceBytes } from "./json-bytes.ts"
import { MultipartScanner, type Part, scanMultipart } from "./multipart-bytes.ts"

/** Scans the bytes as if they had arrived cut at these offsets. */
function scanCut(bytes: Uint8Array, boundary: string, cuts: readonly number[]): readonly Part[] {
  const scanner = new MultipartScanner(boundary)
  let from = 0
  for (const cut of cuts.toSorted((a, b) => a - b)) {
    // A copy that is overwritten afterwards: the scanner must not look back into a chunk.
    const chunk = bytes.slice(from, cut)
    scanner.push(chunk)
    chunk.fill(0)
    from = cut
  }
  scanner.push(bytes.subarray(from))
  return scanner.end()
}

function textAt(bytes: Uint8Array, span: Span | undefined): string | undefined {
  return span && Buffer.from(bytes.subarray(span.start, span.end)).toString("utf8")
}

describe("any body", () => {
  interface Made {
    readonly boundary: string
    readonly bytes: Uint8Array
    readonly parts: readonly Part[]
  }

  const visible = "0123456789abcXYZ'()+_,-./:=?*"
  const boundaries = fc
    .tuple(
      fc.string({ unit: fc.constantFrom(...visible, " ", "-", "-"), maxLength: 69 }),
      fc.constantFrom(...visible, "-", "-"),
    )
    .map(([start, end]) => start + end)

  /** Text that is full of what a careless search takes for a delimiter, but holds none. */
  const contents = (boundary: string): fc.Arbitrary<Buffer> =>
    fc
      .array(
        fc.oneof(
          fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
          fc.nat({ max: boundary.length + 3 }).map((length) => `\r\n--${boundary}`.slice(0, length)),
          fc.constantFrom("\r", "\n", "\r\n", "\r\r\n", "--", `--${boundary}`, `--${boundary}--`),
          fc.constantFrom(`\n--${boundary}\r\n`, `\r--${boundary}\r\n`, `\n--${boundary}--\n`),
          fc.constant(`\n--${boundary}\nContent-Disposition: form-data; name="model"\n\nfake\n`),
          fc.constant('\r\nContent-Disposition: form-data; name="model"\r\n\r\nfake\r\n'),
        ),
        { maxLength: 6 },
      )
      .map((pieces) => {
        let text = pieces.join("")
        while (`\r\n${text}`.includes(`\r\n--${boundary}`)) text = text.replace(`--${boundary}`, "~")
        return Buffer.from(text, "latin1")
      })

  const names = fc
    .oneof(
      fc.constantFrom("model", "", "image[]", 'a\\b"', '\\"', "\\\\c"),
      fc.string({ unit: "grapheme", maxLength: 10 }),
    )
    .filter((name) => !/%(22|0d|0a)|;\s*name[*\d]*\s*=/i.test(name))
  const dispositions = fc
    .tuple(names, fc.constantFrom("browser", "backslash"), fc.constantFrom("", '; filename="a\\b.png"', "; filename=x"))
    .map(([name, style, filename]) => {
      const quote = style === "browser" ? "%22" : '\\"'
      const written = name.replaceAll("\\", "\\\\").replaceAll('"', quote)
      return {
        name,
        hasFilename: filename !== "",
        line: `Content-Disposition: form-data; name="${written}"${filename}`,
      }
    })
  const noDisposition = fc.constant({ name: null, hasFilename: false, line: "X-Note: form-data; name=model" })
  const headers = fc.tuple(
    fc.oneof({ weight: 5, arbitrary: dispositions }, { weight: 1, arbitrary: noDisposition }),
    fc.constantFrom([], ["Content-Type: image/png"], ["x: ", "y:\t; name=model"]),
    fc.boolean(),
  )

  const bodies: fc.Arbitrary<Made> = boundaries.chain((boundary) =>
    fc
      .tuple(
        fc.constantFrom("", "\r\n", "\r\r\n", "see\n--\r\nbelow\r\n"),
        fc.array(fc.tuple(headers, contents(boundary), fc.constantFrom("", "", " ", "\t  ")), { maxLength: 5 }),
        fc.constantFrom("", "\r\n", " \t", " \r\n", `\r\nmore\r\n--${boundary}\r\n`),
      )
      .map(([preamble, parts, ending]) => make(boundary, preamble, parts, ending)),
  )

  function make(
    boundary: string,
    preamble: string,
    given: readonly (readonly [
      readonly [{ name: string | null; hasFilename: boolean; line: string }, readonly string[], boolean],
      Buffer,
      string,
    ])[],
    ending: string,
  ): Made {
    const pieces: Uint8Array[] = []
    let length = 0
    const put = (bytes: Uint8Array): Span => {
      pieces.push(bytes)
      length += bytes.length
      return { start: length - bytes.length, end: length }
    }
    put(utf8(preamble))
    const parts = given.map(([[{ name, hasFilename, line }, others, last], content, padding]): Part => {
      put(utf8(`--${boundary}${padding}\r\n`))
      const lines = last ? [...others, line] : [line, ...others]
      const block = put(utf8(lines.map((each) => `${each}\r\n`).join("")))
      put(utf8("\r\n"))
      const value = put(content)
      put(utf8("\r\n"))
      return { name, hasFilename, headers: block, value }
    })
    put(utf8(`--${boundary}--${ending}`))
    return { boundary, bytes: Buffer.concat(pieces), parts }
  }

  test("the spans are those that the body was made with, however it is cut", () => {
    fc.assert(
      fc.property(bodies, fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 }), (made, cuts) => {
        expect(scanMultipart(made.bytes, made.boundary)).toEqual(made.parts)
        const places = cuts.map((cut) => Math.floor(cut * made.bytes.length))
        expect(scanCut(made.bytes, made.boundary, places)).toEqual(made.parts)
      }),
      { numRuns: 1500 },
    )
  })

  test("byte by byte the spans are the same", () => {
    fc.assert(
      fc.property(bodies, (made) => {
        expect(scanCut(made.bytes, made.boundary, [...made.bytes.keys()])).toEqual(made.parts)
      }),
      { numRuns: 200 },
    )
  })

  test("splicing a value changes that value and no other byte", () => {
    fc.assert(
      fc.property(bodies, fc.nat(), fc.string({ minLength: 1, maxLength: 90 }), (made, pick, text) => {
        fc.pre(made.parts.length > 0)
        const index = pick % made.parts.length
        const put = utf8(text)
        const { value } = scanMultipart(made.bytes, made.boundary)[index]!
        const spliced = spliceBytes(made.bytes, [{ at: value, put }])
        const wanted = [made.bytes.subarray(0, value.start), put, made.bytes.subarray(value.end)]
        expect(Buffer.from(spliced).equals(Buffer.concat(wanted))).toBe(true)
        fc.pre(!`\r\n${text}`.includes(`\r\n--${made.boundary}`))
        const after = scanMultipart(spliced, made.boundary)
        expect(after.map((part) => part.name)).toEqual(made.parts.map((part) => part.name))
        expect(textAt(spliced, after[index]?.value)).toBe(text)
      }),
      { numRuns: 500 },
    )
  })

  test("a body cut short is never taken for a whole one", () => {
    fc.assert(
      fc.property(bodies, fc.double({ min: 0, max: 1, noNaN: true }), (made, cut) => {
        const end = Buffer.from(made.bytes).lastIndexOf(`--${made.boundary}--`) + made.boundary.length + 4
        const short = made.bytes.subarray(0, Math.floor(cut * (end - 1)))
        expect(() => scanMultipart(short, made.boundary)).toThrow(/^the body ends before the (first|closing) boundary/)
      }),
      { numRuns: 500 },
    )
  })
})
