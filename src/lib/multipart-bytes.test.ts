import { describe, expect, test } from "bun:test"
import OpenAI, { toFile } from "openai"
import { utf8 } from "./bytes.ts"
import { type Span, spliceBytes } from "./json-bytes.ts"
import {
  boundaryOf,
  MultipartProblem,
  MultipartScanner,
  maxHeaderBytesPerPart,
  maxHeadersPerPart,
  maxParts,
  type Part,
  scanMultipart,
} from "./multipart-bytes.ts"

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

function problemOf(bytes: Uint8Array, boundary: string, ...cuts: number[]): MultipartProblem | null {
  try {
    scanCut(bytes, boundary, cuts)
    return null
  } catch (problem) {
    if (problem instanceof MultipartProblem) return problem
    throw problem
  }
}

function textAt(bytes: Uint8Array, span: Span | undefined): string | undefined {
  return span && Buffer.from(bytes.subarray(span.start, span.end)).toString("utf8")
}

/** Name and content of each part, as text. */
function entries(bytes: Uint8Array, parts: readonly Part[]): readonly (readonly [string | null, string | undefined])[] {
  return parts.map((part) => [part.name, textAt(bytes, part.value)])
}

/** A body with boundary `b` and one part that has these header lines. */
function withHeaders(...lines: readonly string[]): Uint8Array {
  return utf8(`--b\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\nvalue\r\n--b--\r\n`)
}

describe("cuts", () => {
  const body = utf8(
    "pre\r--b\n--b\r\n--b \t\r\ncontent-disposition:form-data;filename*=UTF-8''x;NAME=file\r\nA: b\r\n\r\n" +
      "\r\n--\r\n-\r\r\n--\n--b\r\n--B" +
      '\r\n--b\r\nContent-Disposition: form-data; name="mo%22del"\r\n\r\n' +
      "\r\n--b\r\n\r\n\r\r\n--b--\t\r\n\r\n--b\r\n",
  )

  test("a small body full of almost-delimiters reads the same for every one and every two cuts", () => {
    const expected = scanMultipart(body, "b")
    expect(entries(body, expected)).toEqual([
      ["file", "\r\n--\r\n-\r\r\n--\n--b\r\n--B"],
      ['mo"del', ""],
      [null, "\r"],
    ])
    const differing: string[] = []
    for (let first = 0; first <= body.length; first++) {
      for (let second = first; second <= body.length; second++) {
        if (!Bun.deepEquals(scanCut(body, "b", [first, second]), expected)) differing.push(`${first}, ${second}`)
      }
    }
    expect(differing).toEqual([])
  })

  test("empty chunks change nothing", () => {
    const bytes = withHeaders("Content-Disposition: form-data; name=model")
    const everywhere = [...bytes.keys(), ...bytes.keys(), bytes.length]
    expect(scanCut(bytes, "b", everywhere)).toEqual(scanMultipart(bytes, "b"))
  })
})

describe("encoders in the field", () => {
  async function read(made: Request | Response): Promise<{ bytes: Uint8Array; parts: readonly Part[] }> {
    // Asked for before the body: once that is read, the runtime no longer knows the content-type it made.
    const boundary = boundaryOf(made.headers.get("content-type") ?? "")
    const bytes = new Uint8Array(await made.arrayBuffer())
    return { bytes, parts: scanMultipart(bytes, boundary ?? "none") }
  }

  test("the runtime's own form data reads as it was put in", async () => {
    const form = new FormData()
    const file = Uint8Array.from({ length: 70_000 }, (_, index) => (index * 7) % 256)
    form.append('größe "x"\r\n', "1\r\n2")
    form.append("image[]", new File([file], 'a"b;ü.png', { type: "image/png" }))
    form.append("model", "gpt-image")
    form.append("empty", new Blob([]))
    const { bytes, parts } = await read(new Response(form))
    expect(parts.map((part) => [part.name, part.hasFilename])).toEqual([
      ['größe "x"\r\n', false],
      ["image[]", true],
      ["model", false],
      ["empty", true],
    ])
    expect(textAt(bytes, parts[0]?.value)).toBe("1\r\n2")
    expect(bytes.slice(parts[1]!.value.start, parts[1]!.value.end)).toEqual(file)
    expect(textAt(bytes, parts[2]?.value)).toBe("gpt-image")
    expect(textAt(bytes, parts[3]?.value)).toBe("")
  })

  test("form data without a field is a body without a part", async () => {
    expect((await read(new Response(new FormData()))).parts).toEqual([])
  })

  test("the runtime reads back a body whose model was replaced", async () => {
    const form = new FormData()
    form.append("file", new File(["\r\nsound\r\n"], "a.wav"))
    form.append("model", "mine")
    const made = new Response(form)
    const type = made.headers.get("content-type") ?? ""
    const { bytes, parts } = await read(made)
    const body = spliceBytes(bytes, [{ at: parts[1]!.value, put: utf8("theirs-2026") }])
    const back = await new Response(body as Uint8Array<ArrayBuffer>, { headers: { "content-type": type } }).formData()
    expect(back.get("model")).toBe("theirs-2026")
    expect(await (back.get("file") as File).text()).toBe("\r\nsound\r\n")
  })

  test("uploads of the openai package read as they were asked for", async () => {
    const sent: Request[] = []
    const client = new OpenAI({
      apiKey: "none",
      baseURL: "http://127.0.0.1/v1",
      fetch: (url, init) => {
        // The package first tries its fetch with an empty call, to learn whether it takes form data.
        if (init?.method === "POST") sent.push(new Request(url as string, init as RequestInit))
        return Promise.resolve(Response.json({ text: "", data: [] }))
      },
    })
    const sound = await toFile(Buffer.from("RIFF\r\n--x"), "ü.wav")
    await client.audio.transcriptions.create({ file: sound, model: "whisper-1", timestamp_granularities: ["word"] })
    const images = [await toFile(Buffer.from("one"), "1.png"), await toFile(Buffer.from("two"), "2.png")]
    await client.images.edit({ image: images, prompt: "a cat", model: "gpt-image-1" })
    const [first, second] = await Promise.all(sent.map(read))
    // Sorted, since the package puts a field in when its value is ready.
    const told = ({ bytes, parts }: { bytes: Uint8Array; parts: readonly Part[] }): readonly string[] =>
      parts.map((part) => `${part.name} ${part.hasFilename} ${textAt(bytes, part.value)}`).toSorted()
    expect(told(first!)).toEqual([
      "file true RIFF\r\n--x",
      "model false whisper-1",
      "timestamp_granularities[] false word",
    ])
    expect(told(second!)).toEqual([
      "image[] true one",
      "image[] true two",
      "model false gpt-image-1",
      "prompt false a cat",
    ])
  })
})

test("a part may have no header at all", () => {
  const bytes = utf8("--b\r\n\r\nvalue\r\n--b--")
  const part = { name: null, hasFilename: false, headers: { start: 5, end: 5 }, value: { start: 7, end: 12 } }
  expect(scanMultipart(bytes, "b")).toEqual([part])
})

describe("what is no multipart body", () => {
  const model = "Content-Disposition: form-data; name=model"
  test.each([
    ["", "the body ends before the first boundary at byte 0"],
    ["{}", "the body ends before the first boundary at byte 2"],
    ["x--b--", "the body ends before the first boundary at byte 6"],
    ["\n--b--", "the body ends before the first boundary at byte 6"],
    ["--b", "the body ends before the closing boundary at byte 3"],
    ["--b\r\n", "the body ends before the closing boundary at byte 5"],
    ["--b\r\nA: b\r\n", "the body ends before the closing boundary at byte 11"],
    ["--b\r\nA: b\r\n\r\nx\r\n--b\r\n", "the body ends before the closing boundary at byte 21"],
    ["--b\r\nA: b\r\n\r\nx\n--b--\n", "the body ends before the closing boundary at byte 21"],
    ["--b ", "the body ends before the closing boundary at byte 4"],
    ["--b-", "the body ends before the closing boundary at byte 4"],
    ["--b--\r", "the body ends before the closing boundary at byte 6"],
    ["--b\nA: b\n\nx\n--b--\n", 'expected CRLF or "--" after the boundary, found control character 0x0a at byte 3'],
    ["--bb\r\n", 'expected CRLF or "--" after the boundary, found "b" at byte 3'],
    ["--b x\r\n", 'expected CRLF or "--" after the boundary, found "x" at byte 4'],
    ["--b\rx", 'expected CRLF or "--" after the boundary, found "x" at byte 4'],
    ["--b -- \r\n", 'expected CRLF or "--" after the boundary, found "-" at byte 4'],
    ["--b-x", 'expected CRLF or "--" after the boundary, found "x" at byte 4'],
    ["--b--x", 'expected CRLF after the boundary, found "x" at byte 5'],
    ["--b--\n", "expected CRLF after the boundary, found control character 0x0a at byte 5"],
    ["--b\r\n\r\n1\r\n--bound\r\n", 'expected CRLF or "--" after the boundary, found "o" at byte 13'],
    ["--b\r\n--b\r\n", 'a part\'s header line is not "name: value" at byte 5'],
    [`--b\r\n${model}\r\n\r\n--b--`, "the boundary follows a part's headers without a line of its own at byte 51"],
    [`--b\r\n${model}; x\r\n\r\n`, 'content-disposition: expected name=word or name="text" at byte 49'],
    [`--b\r\n${model}\r\n${model}\r\n\r\n`, "a part has two content-disposition headers at byte 49"],
    [`--b\r\n${model}\r\n x: y\r\n\r\n`, "a part's header is folded over two lines at byte 49"],
    [`--b\r\n\t${model}\r\n\r\n`, "a part's header is folded over two lines at byte 5"],
    [`--b\r\n${model}\n\r\n`, "a part's header line ends with LF, not CRLF at byte 47"],
    ["--b\r\n\nx\r\n--b--", "a part's header line ends with LF, not CRLF at byte 5"],
    ["--b\r\nA: b\rC: d\r\n\r\n", "unexpected control character 0x0d in a part's header at byte 9"],
    ["--b\r\nA: \0\r\n\r\n", "unexpected control character 0x00 in a part's header at byte 8"],
    ["--b\r\nA: \x7f\r\n\r\n", "unexpected byte 0x7f in a part's header at byte 8"],
    ["--b\r\nA : b\r\n\r\n", 'a part\'s header line is not "name: value" at byte 5'],
    ["--b\r\nA\r\n\r\n", 'a part\'s header line is not "name: value" at byte 5'],
    ["--b\r\n: b\r\n\r\n", 'a part\'s header line is not "name: value" at byte 5'],
  ])("%j: the problem says what and where, however it is cut", (text, message) => {
    const bytes = utf8(text)
    for (let cut = 0; cut <= bytes.length; cut++) expect(problemOf(bytes, "b", cut)?.message).toBe(message)
  })

  test("a scanner that has failed goes on failing", () => {
    const scanner = new MultipartScanner("b")
    const message = 'expected CRLF or "--" after the boundary, found "x" at byte 3'
    expect(() => scanner.push(utf8("--bx"))).toThrow(message)
    expect(() => scanner.push(utf8("\r\n--b--"))).toThrow(message)
    expect(() => scanner.end()).toThrow(message)
  })
})

describe("limits", () => {
  /** Header lines of this many bytes in all. */
  const linesOf = (bytes: number): string => `A: ${"x".repeat(bytes - "A: \r\n".length)}`
  const start = "--b\r\n".length

  test("a part's headers may fill their limit and not one byte more", () => {
    expect(scanMultipart(withHeaders(linesOf(maxHeaderBytesPerPart)), "b")).toHaveLength(1)
    const message = `a part's headers are longer than 16384 bytes at byte ${start + maxHeaderBytesPerPart}`
    for (const excess of [1, 2, 3, 100]) {
      const bytes = withHeaders("X: y", linesOf(maxHeaderBytesPerPart - "X: y\r\n".length + excess))
      for (const cut of [0, start + 10, start + maxHeaderBytesPerPart - 1, bytes.length - 15]) {
        expect(problemOf(bytes, "b", cut)?.message).toBe(message)
      }
    }
  })

  test("a header line without an end is refused when it passes the limit, not kept", () => {
    const scanner = new MultipartScanner("b")
    scanner.push(utf8("--b\r\nA: "))
    const piece = utf8("x".repeat(1000))
    expect(() => {
      for (let count = 0; count < 20; count++) scanner.push(piece)
    }).toThrow(`longer than 16384 bytes at byte ${start + maxHeaderBytesPerPart}`)
  })

  test("a part may have so many headers and not one more", () => {
    const lines = Array.from({ length: maxHeadersPerPart + 1 }, () => "A: b")
    expect(scanMultipart(withHeaders(...lines.slice(1)), "b")).toHaveLength(1)
    expect(problemOf(withHeaders(...lines), "b")?.message).toBe(
      `more than 64 headers in a part at byte ${start + maxHeadersPerPart * 6}`,
    )
  })

  test("each part has limits of its own", () => {
    const part = (lines: readonly string[]): string => `--b\r\n${lines.join("\r\n")}\r\n\r\nx\r\n`
    const many = part(Array.from({ length: maxHeadersPerPart }, () => "A: b"))
    const long = part([linesOf(maxHeaderBytesPerPart)])
    expect(scanMultipart(utf8(`${many}${long}${many}${long}--b--`), "b")).toHaveLength(4)
  })

  test("a body may have so many parts and not one more", () => {
    const body = (count: number): Uint8Array => utf8(`${"--b\r\n\r\nx\r\n".repeat(count)}--b--`)
    expect(scanMultipart(body(maxParts), "b")).toHaveLength(maxParts)
    expect(problemOf(body(maxParts + 1), "b")?.message).toBe(`more than 1000 parts at byte ${maxParts * 10 + start}`)
  })
})

describe("boundary", () => {
  test.each([
    ["multipart/form-data; boundary=abc", "abc"],
    ["Multipart/Form-Data;BOUNDARY=aBc", "aBc"],
    ['multipart/form-data; boundary="abc"', "abc"],
    ["multipart/form-data; charset=utf-8; boundary=abc; x=y", "abc"],
    ['multipart/form-data; note="a\\"; boundary=no"; boundary=abc ;', "abc"],
    ["multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxk", "----WebKitFormBoundary7MA4YWxk"],
    [`multipart/form-data; boundary="a b'()+_,-./:=?"`, "a b'()+_,-./:=?"],
    ["multipart/form-data; boundary=*****", "*****"],
    [`multipart/form-data; boundary=${"x".repeat(70)}`, "x".repeat(70)],
    [`multipart/form-data; boundary=${"x".repeat(71)}`, null],
    ["multipart/form-data; boundary=", null],
    ['multipart/form-data; boundary=""', null],
    ['multipart/form-data; boundary="a "', null],
    ['multipart/form-data; boundary="a\\b"', null],
    ['multipart/form-data; boundary="ü"', null],
    ['multipart/form-data; boundary="a', null],
    ["multipart/form-data; boundary=a b", null],
    ["multipart/form-data; boundary = abc", null],
    ["multipart/form-data; boundary=a; boundary=b", null],
    ["multipart/form-data; boundary=a, multipart/form-data; boundary=b", null],
    ["multipart/form-data; boundary=a; boundary*=UTF-8''b", null],
    ["multipart/form-data; xboundary=abc", null],
    ["multipart/form-data", null],
    ["application/json; boundary=abc", null],
    ["", null],
  ])("of %j", (contentType, boundary) => {
    expect(boundaryOf(contentType)).toBe(boundary)
  })

  test.each(["", "a ", "a\r\nb", 'a"b', "x".repeat(71)])("%j is refused by the scanner", (boundary) => {
    expect(() => new MultipartScanner(boundary)).toThrow("not a multipart boundary")
  })
})
